import { LabIcon } from '@jupyterlab/ui-components';

/** Steps on a line, the last one still open. `jp-icon3` takes the colour of the theme. */
export const durableIcon = new LabIcon({
  name: 'jupyter-durable:icon',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><g class="jp-icon3" fill="#616161">' +
    '<path d="M11 3h2v18h-2z"/><circle cx="12" cy="5" r="3"/><circle cx="12" cy="12" r="3"/>' +
    '<path d="M12 15.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zm0 2a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z"/></g></svg>'
});

/** Go on from where it stopped: unlike the plain triangle of "run", it begins at a line. */
export const resumeIcon = new LabIcon({
  name: 'jupyter-durable:resume-icon',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><g class="jp-icon3" fill="#616161">' +
    '<path d="M4 5h3v14H4z"/><path d="M10 5v14l11-7z"/></g></svg>'
});

/** Begin anew: a run that turns back to its beginning. */
export const freshIcon = new LabIcon({
  name: 'jupyter-durable:fresh-icon',
  svgstr:
    '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 24 24"><g class="jp-icon3" fill="#616161">' +
    '<path d="M12 5V1L7 6l5 5V7a5 5 0 1 1-5 5H5a7 7 0 1 0 7-7z"/></g></svg>'
});

/** The views beside the notebook, in an area of their own that is made when it is first wanted. */
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { MainAreaWidget } from '@jupyterlab/apputils';
import { SplitPanel, type Widget } from '@lumino/widgets';
import { durableIcon } from './icon';
import type { ViewName } from './tokens';
import { type IOptions, ViewsWidget } from './widgets';

export class ViewsArea {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly options: IOptions
  ) {}

  show(name: ViewName): void {
    const area = this.area && !this.area.isDisposed ? this.area : this.make(name);
    area.content.present(name);
    this.app.shell.activateById(area.id);
    makeRoom(area);
  }

  private make(name: ViewName): MainAreaWidget<ViewsWidget> {
    const area = new MainAreaWidget({ content: new ViewsWidget(this.options, name) });
    area.id = 'jupyter-durable-views-area';
    area.title.label = this.options.words.__('Durable cells');
    area.title.icon = durableIcon;
    area.title.closable = true;
    // Notebook 7 has its one notebook in the main area, and no place for another tab there.
    const notebook7 = this.app.name !== 'JupyterLab';
    this.app.shell.add(area, notebook7 ? 'down' : 'main', { mode: 'split-bottom' });
    this.area = area;
    return area;
  }

  private area: MainAreaWidget<ViewsWidget> | null = null;
}

/** Notebook 7 opens its lower area as low as it may be; a widget above or beside the notebook stays as it is. */
function makeRoom(widget: Widget): void {
  for (let above = widget.parent; above; above = above.parent) {
    if (above instanceof SplitPanel && above.orientation === 'vertical') {
      if ((above.relativeSizes()[1] ?? 1) < 0.2) {
        above.setRelativeSizes([3, 2]);
      }
      return;
    }
  }
}

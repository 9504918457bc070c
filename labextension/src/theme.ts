/** Whether a page is dark, where no theme says so. */

/** Red, green, blue from 0 to 255, and opacity from 0 to 1, of a computed colour; `null` if it is written otherwise. */
export function channels(color: string): [number, number, number, number] | null {
  const found = /^rgba?\(([^)]+)\)$/.exec(color.trim());
  const numbers = (found?.[1] ?? '').split(/[\s,/]+/).map(Number);
  const [red, green, blue, alpha] = numbers;
  if (red === undefined || green === undefined || blue === undefined || numbers.some(Number.isNaN)) {
    return null;
  }
  return [red, green, blue, alpha ?? 1];
}

export function isDarkColor(color: string): boolean | null {
  const found = channels(color);
  if (!found || found[3] < 0.5) {
    return null;
  }
  const [red, green, blue] = found;
  return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
}

/** The page behind an element is dark: by its colour, by what the front end says, by what the person prefers. */
export function isDark(element: Element): boolean {
  for (let each: Element | null = element; each; each = parentOf(each)) {
    const dark = isDarkColor(getComputedStyle(each).backgroundColor);
    if (dark !== null) {
      return dark;
    }
  }
  const { body, documentElement } = document;
  const said = [
    body.dataset['vscodeThemeKind'],
    documentElement.getAttribute('theme'),
    documentElement.dataset['theme'],
    body.className
  ]
    .join(' ')
    .toLowerCase();
  if (/\b(vscode-)?(dark|high-contrast)\b/.test(said)) {
    return !said.includes('high-contrast-light');
  }
  return matchMedia('(prefers-color-scheme: dark)').matches;
}

/** Also out of a shadow tree, in which some front ends draw. */
function parentOf(element: Element): Element | null {
  const root = element.getRootNode();
  return element.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
}

/** Tell when the theme may have changed; the answer ends it. */
export function onTheme(tell: () => void): () => void {
  const media = matchMedia('(prefers-color-scheme: dark)');
  media.addEventListener('change', tell);
  const observer = new MutationObserver(tell);
  for (const element of [document.documentElement, document.body]) {
    observer.observe(element, {
      attributes: true,
      attributeFilter: [
        'class',
        'style',
        'theme',
        'data-theme',
        'data-vscode-theme-kind',
        'data-jp-theme-name'
      ]
    });
  }
  return () => {
    media.removeEventListener('change', tell);
    observer.disconnect();
  };
}

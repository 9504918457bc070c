/** How a person looks at the runs of one notebook. Each notebook has its own, and gets it back with its tab. */

/** The quick choices of the filter, beside free text. */
export type Only = 'all' | 'live' | 'failed' | 'doubt' | 'waiting' | 'running' | 'model';

/** What is shown of the tree. */
export interface ILook {
  /** The words of the filter. */
  text: string;
  only: Only;
  /** Keys of the lines whose insides are hidden. */
  collapsed: ReadonlySet<string>;
}

export const WHOLE: ILook = { text: '', only: 'all', collapsed: new Set() };

/** What is chosen in a notebook. */
export interface IPlace {
  /** Whether a person chose the run; else the panel goes along with what ran last. */
  picked: boolean;
  /** Whether the runs of other notebooks are listed too. */
  others: boolean;
  run: string;
  branch: string;
  step: number | null;
  look: ILook;
  /** Whether cells are run again once they can go on; `null`: as the settings say. */
  goOn: boolean | null;
}

export const BEGINNING: IPlace = {
  picked: false,
  others: false,
  run: '',
  branch: '',
  step: null,
  look: WHOLE,
  goOn: null
};

/** The places of all notebooks of a page, by their paths. */
export class Places {
  private readonly byPath = new Map<string, IPlace>();

  of(path: string): IPlace {
    return this.byPath.get(path) ?? BEGINNING;
  }

  keep(path: string, place: IPlace): void {
    this.byPath.set(path, place);
  }

  /** A notebook has another path; one that comes under the old one begins anew. */
  move(before: string, after: string): void {
    const place = this.byPath.get(before);
    this.byPath.delete(before);
    if (place) {
      this.byPath.set(after, place);
    }
  }
}

/** The routes, one function each. What they mean: `jupyter_durable/server/__init__.py`. */
import type {
  By,
  IAnswerQuestion,
  IAbout,
  IBill,
  ICancelQuestion,
  IDecideQuestion,
  IDiff,
  IDone,
  IForkQuestion,
  IPage,
  IResumeQuestion,
  IRunDetail,
  IRuns,
  ISettleQuestion,
  ISignalQuestion,
  ISqlAnswer,
  IStepDetail,
  ISwitchQuestion,
  IWaits
} from './shapes';
import type { ITransport, Parameters } from './transport';

/** The log of one notebook. */
export class Api {
  /**
   * @param transport - carries the questions
   * @param notebook - its path, as whoever answers has it
   */
  constructor(
    private readonly transport: ITransport,
    readonly notebook: string
  ) {}

  about(): Promise<IAbout> {
    return this.get(['about']);
  }

  runs(): Promise<IRuns> {
    return this.get(['runs']);
  }

  run(run: string): Promise<IRunDetail> {
    return this.get(['runs', run]);
  }

  steps(run: string, branch: string, after: number, epoch: string, limit: number): Promise<IPage> {
    return this.get(['runs', run, 'branches', branch, 'steps'], { after, epoch, limit });
  }

  step(run: string, branch: string, number: number): Promise<IStepDetail> {
    return this.get(['runs', run, 'branches', branch, 'steps', String(number)]);
  }

  spend(by: By, run?: string): Promise<IBill> {
    return this.get(['spend'], { by, run });
  }

  diff(run: string, a: string, b: string, after: number | undefined, changed: boolean): Promise<IDiff> {
    return this.get(['diff'], { run, a, b, after, limit: 500, only: changed ? 'changed' : undefined });
  }

  sql(query: string, limit = 1000): Promise<ISqlAnswer> {
    return this.post(['sql'], { query, limit });
  }

  decide(question: IDecideQuestion): Promise<IDone> {
    return this.post(['decide'], question);
  }

  settle(question: ISettleQuestion): Promise<IDone> {
    return this.post(['settle'], question);
  }

  fork(question: IForkQuestion): Promise<IDone> {
    return this.post(['fork'], question);
  }

  switch(question: ISwitchQuestion): Promise<IDone> {
    return this.post(['switch'], question);
  }

  cancel(question: ICancelQuestion): Promise<IDone> {
    return this.post(['cancel'], question);
  }

  resume(question: IResumeQuestion): Promise<IDone> {
    return this.post(['resume'], question);
  }

  waiting(): Promise<IWaits> {
    return this.get(['waiting']);
  }

  answer(question: IAnswerQuestion): Promise<IDone> {
    return this.post(['answer'], question);
  }

  signal(question: ISignalQuestion): Promise<IDone> {
    return this.post(['signal'], question);
  }

  private get<T>(path: string[], parameters: Parameters = {}): Promise<T> {
    return this.transport.get(path, { ...parameters, notebook: this.notebook });
  }

  private post<T>(path: string[], body: unknown): Promise<T> {
    return this.transport.post(path, { notebook: this.notebook }, body);
  }
}

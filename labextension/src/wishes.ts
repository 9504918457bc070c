/** What the settings say; the schema explains each. */

export interface IWishes {
  stateDots: boolean;
  notifyAfterKernelDeath: boolean;
  askBeforeResume: boolean;
  askBeforeRerun: boolean;
  resumeWhenAnswered: boolean;
  notifyQuestions: boolean;
  refreshSeconds: number;
}

/** Until the settings are read. */
export const WISHES: IWishes = {
  stateDots: true,
  notifyAfterKernelDeath: true,
  askBeforeResume: true,
  askBeforeRerun: true,
  resumeWhenAnswered: false,
  notifyQuestions: true,
  refreshSeconds: 2
};

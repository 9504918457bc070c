/** Hints from the server's event bus: something changed there, ask. They may be lost and may come twice. */
import type { ServiceManager } from '@jupyterlab/services';
import { DisposableDelegate, type IDisposable } from '@lumino/disposable';
import type { IHint } from './shapes';

/** Listen until the answer is disposed. `schema` tells what the hints are called, once that is known. */
export function listen(
  services: ServiceManager.IManager,
  schema: () => string,
  take: (hint: IHint) => void
): IDisposable {
  const stream = services.events.stream;
  const slot = (_: unknown, emission: { schema_id: string }): void => {
    // Others speak on the bus too: every save of a file, for one.
    if (emission.schema_id !== '' && emission.schema_id === schema()) {
      take(emission as unknown as IHint);
    }
  };
  stream.connect(slot);
  return new DisposableDelegate(() => {
    stream.disconnect(slot);
  });
}

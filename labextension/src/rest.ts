/** Questions by REST to the server extension, hints from the server's event bus. */
import type { ServiceManager } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { listen } from './push';
import { request } from './request';
import type { IHint } from './shapes';
import type { ITransport, Parameters } from './transport';

export class RestTransport implements ITransport {
  constructor(private readonly services: ServiceManager.IManager) {}

  get<T>(path: readonly string[], parameters: Parameters): Promise<T> {
    return request(this.services.serverSettings, path, parameters);
  }

  post<T>(path: readonly string[], parameters: Parameters, body: unknown): Promise<T> {
    return request(this.services.serverSettings, path, parameters, body);
  }

  listen(schema: () => string, take: (hint: IHint) => void): IDisposable {
    return listen(this.services, schema, take);
  }
}

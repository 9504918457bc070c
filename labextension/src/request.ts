/** One question to the server extension, by the server's own rules: base URL, token, XSRF header. */
import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { ROUTE } from './tokens';
import { isProblem, type Parameters, RequestError } from './transport';

/**
 * @param path - words of the address; each is quoted, so that a name with a slash stays one word
 * @param parameters - of the query; undefined ones are left out
 * @param body - makes it a POST
 */
export async function request<T>(
  settings: ServerConnection.ISettings,
  path: readonly string[],
  parameters: Parameters = {},
  body?: unknown
): Promise<T> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) {
      query.set(name, String(value));
    }
  }
  const address = URLExt.join(settings.baseUrl, ROUTE, ...path.map(encodeURIComponent));
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  let response: Response;
  try {
    response = await ServerConnection.makeRequest(`${address}?${query.toString()}`, init, settings);
  } catch (reason) {
    throw new RequestError(reason instanceof Error ? reason.message : String(reason), 0, null);
  }
  const text = await response.text();
  let answer: unknown = null;
  try {
    answer = JSON.parse(text);
  } catch {
    // A page of a proxy, or of the server itself: not ours.
  }
  if (!response.ok) {
    const problem = isProblem(answer) ? answer : null;
    throw new RequestError(
      problem?.message ?? `${response.status} ${response.statusText}`,
      response.status,
      problem
    );
  }
  if (answer === null) {
    throw new RequestError('The answer is not JSON.', response.status, null);
  }
  return answer as T;
}

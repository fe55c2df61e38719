import { parseJson } from '@interlude/protocol/fields';
import { connectionMessage, type Endpoint, errorIn, requestServer } from '../server-request';
import { CliError, EXIT } from './exit';

const WITHIN_MS = 30_000;

/**
 * One request of somebody at a terminal, who is told in one line why it came to nothing.
 *
 * @param endpoint with the token of whoever Interlude belongs to
 * @throws CliError
 */
export async function askServer<Answer>(
  endpoint: Endpoint,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object,
): Promise<Answer> {
  const { url, token } = await endpoint();
  const give = 'the one of the data folder’s file "token", with --token-file or INTERLUDE_TOKEN';
  if (token === undefined) throw new CliError(EXIT.failed, `there is no token for ${url}; give its owner’s: ${give}`);
  let status: number;
  let text: string;
  try {
    const response = await requestServer(async () => ({ url, token }), path, {
      ...(method === 'GET' ? {} : { method }),
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    status = response.status;
    text = await response.text();
  } catch (error) {
    const why = connectionMessage(error);
    throw new CliError(EXIT.failed, `${url} does not answer (${why}); start Interlude, or name another with --url`);
  }
  if (status === 200 || status === 201) return parseJson(text) as Answer;
  const error = errorIn(text);
  if (status === 401 && error !== null) {
    throw new CliError(EXIT.failed, `${url} does not know this token; give its owner’s: ${give}`);
  }
  throw new CliError(EXIT.failed, error === null ? `${url} is no Interlude: it answered ${status}` : error.message);
}

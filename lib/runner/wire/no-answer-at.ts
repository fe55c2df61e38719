import { connect } from 'node:net';
import { connectionMessage } from '../server-request';
import { shownUrl } from './shown-url';

/** A machine that is gone refuses nothing: no answer within this time counts as one. */
const WITHIN_MS = 3_000;
/** A tunnel or a container's port accepts for a server that is gone, and closes again: a server waits to be asked. */
const STAYS_MS = 300;
/** Answers of a gateway whose server is gone. */
const GATEWAY: ReadonlySet<number | null> = new Set([502, 503, 504]);

/**
 * Why an agent's server can't be reached: `no answer at http://127.0.0.1:8000/: ECONNREFUSED`; null if it can. A server
 * that is busy still accepts connections, so slowness is no death. Nothing is sent.
 *
 * @param lastStatus of the newest answer, where a gateway may stand before the server
 */
export async function noAnswerAt(url: string, lastStatus: number | null): Promise<string | null> {
  const why = GATEWAY.has(lastStatus) ? `its gateway says ${lastStatus}` : await refusalAt(new URL(url));
  return why === null ? null : `no answer at ${shownUrl(url)}: ${why}`;
}

/**
 * Asks at a second address, where a gateway has refused the first: it may refuse a single path (a stream that is open for
 * too long) while the agent answers at others.
 *
 * @param lastStatus of the newest answer at the first address
 * @param ask at the second, within so many milliseconds
 * @returns the status for `noAnswerAt`
 */
export async function statusBehindGateway(
  lastStatus: number | null,
  ask: (withinMs: number) => Promise<{ status: number }>,
): Promise<number | null> {
  if (!GATEWAY.has(lastStatus)) return lastStatus;
  try {
    return (await ask(WITHIN_MS)).status;
  } catch {
    return lastStatus;
  }
}

function refusalAt({ protocol, hostname, port }: URL): Promise<string | null> {
  const at = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || (protocol === 'https:' ? 443 : 80) };
  return new Promise((resolve) => {
    const socket = connect({ ...at, signal: AbortSignal.timeout(WITHIN_MS) });
    const settle = (refusal: string | null) => {
      socket.destroy();
      resolve(refusal);
    };
    socket.once('connect', () => setTimeout(() => settle(null), STAYS_MS));
    socket.once('end', () => settle('it closes each connection'));
    socket.resume();
    socket.on('error', (error) =>
      settle(error.name === 'AbortError' ? `no connection within ${WITHIN_MS / 1_000} s` : connectionMessage(error)),
    );
  });
}

/**
 * `fetch` for a libSQL server that must answer in time. A connection can die without a word, as on a line that is cut or
 * behind a gateway that forgets it; whoever waited for an answer on it would wait for minutes, and all behind them too.
 * What a gateway says in the place of the server is no answer either.
 */

/** Longer than a server lets a transaction last, and than anything we ask takes. */
export const ANSWER_MS = 10_000;
/** What rewrites or reads a whole table takes longer: a migration, a copy, a check. */
export const MAINTENANCE_MS = 15 * 60_000;

/**
 * @param encoding how answers come. To compress small ones costs both sides more than it saves the line between them;
 *   null leaves it to them
 * @returns answers whose body has come, too. Reading one as JSON that isn't any fails as `fetch` does: nobody knows what
 *   became of the request
 * @throws TypeError as `fetch` does, with the code `ETIMEDOUT` in its cause
 */
export function limitedFetch(
  answerMs = ANSWER_MS,
  encoding: 'identity' | null = null,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const signal = AbortSignal.timeout(answerMs);
    if (encoding !== null) request.headers.set('accept-encoding', encoding);
    try {
      const { body, status, statusText, headers } = await fetch(request, { signal });
      return new Answer(body === null ? null : await new Response(body).arrayBuffer(), { status, statusText, headers });
    } catch (error) {
      // a body that breaks off is no other failure than an answer that never comes
      if (!signal.aborted) throw new TypeError('fetch failed', { cause: error });
      const cause = Object.assign(new Error(`no answer within ${answerMs} ms`, { cause: error }), {
        code: 'ETIMEDOUT',
      });
      throw new TypeError('fetch failed', { cause });
    }
  };
}

/** An answer whose JSON is read once, by libSQL's client: it may be large. What isn't any would be a bare SyntaxError there. */
class Answer extends Response {
  override async json(): Promise<unknown> {
    let value: unknown;
    try {
      value = await super.json();
    } catch (cause) {
      throw new TypeError('fetch failed', { cause });
    }
    if (value !== null && typeof value === 'object') return value;
    throw new TypeError('fetch failed', {
      cause: new TypeError(`the server answered ${typeof value} instead of an object`),
    });
  }
}

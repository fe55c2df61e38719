import { CUSTOM, type TimedEvent } from '@interlude/protocol/ag-ui';
import { fieldsOf, numberOf, parseJson, textOf } from '@interlude/protocol/fields';
import type { LogAbout } from '../logger/log-line';
import type { Cursor } from '../outbox/statements';

/**
 * How much of what the agents of a runner did with tools was gathering: reading, listing and searching, without any
 * change. Told once, as each session ends, with the signal `context_ratio`.
 *
 * Ordering: a call is counted with the event that begins it, and stored with that.
 * Failure: so a kill loses no call and counts none twice. The line and the end of the count are handed over in the same
 * tick as the end of the session: all of them reach the outbox, or none.
 */
export interface ContextRatioOptions {
  tell: (message: string, about: LogAbout) => void;
}

interface Calls {
  gathering: number;
  all: number;
}

const SIGNAL = 'context_ratio';
const CURSOR = 'tool-calls:';
const NONE: Calls = { gathering: 0, all: 0 };

/** Tools that only gather, of the kinds of agents there are: in small letters, without the signs between them. */
const GATHERING: ReadonlySet<string> = new Set(
  [
    'read readfile readmanyfiles readmultiplefiles notebookread view viewfile viewimage',
    'ls list listdir listdirectory listfiles glob findfiles',
    'grep search searchfiles searchfilecontent codesearch toolsearch',
    'webfetch fetch fetchurl websearch googlewebsearch',
    'listmcpresources listmcpresourcestool readmcpresource readmcpresourcetool',
  ].flatMap((line) => line.split(' ')),
);

/** Told, unless INTERLUDE_CONTEXT_RATIO is `off`. */
export function isContextRatioEnabled(env: Record<string, string | undefined>): boolean {
  return env.INTERLUDE_CONTEXT_RATIO?.toLowerCase() !== 'off';
}

export class ContextRatio {
  readonly #tell: ContextRatioOptions['tell'];
  readonly #calls = new Map<string, Calls>();

  constructor({ tell }: ContextRatioOptions) {
    this.#tell = tell;
  }

  /** What the runner before this one counted in sessions that go on. */
  async recall(outbox: { cursors: (prefix: string) => Promise<Map<string, string>> }): Promise<void> {
    for (const [name, value] of await outbox.cursors(CURSOR)) {
      const { gathering, all } = fieldsOf(parseJson(value));
      this.#calls.set(name.slice(CURSOR.length), { gathering: numberOf(gathering) ?? 0, all: numberOf(all) ?? 0 });
    }
  }

  /**
   * Events of a session, subagents’ as well, on their way out.
   * @returns them, with the count on the end of the session, and what is stored with them
   */
  passed(sessionId: string, said: readonly TimedEvent[]): { events: readonly TimedEvent[]; cursors: Cursor[] } {
    const before = this.#calls.get(sessionId) ?? NONE;
    let now = before;
    const events = said.map((one) => {
      const { occurredAt, event } = one;
      if (event.type === 'TOOL_CALL_START') now = countCall(now, event.toolCallName);
      if (event.type !== 'CUSTOM' || event.name !== CUSTOM.sessionEnded) return one;
      const [calls, value] = [now, fieldsOf(event.value)];
      now = NONE;
      this.#ended(sessionId, calls, sessionEnd(value), occurredAt);
      return calls.all === 0 ? one : { occurredAt, event: { ...event, value: { ...value, tool_calls: calls } } };
    });
    return { events, cursors: now === before ? [] : [this.#keep(sessionId, now)] };
  }

  /** No more is told of these sessions, and nobody said that they ended. */
  left(reason: string, at: number): Cursor[] {
    return [...this.#calls].map(([sessionId, calls]) => {
      this.#ended(sessionId, calls, { outcome: 'left', reason }, at);
      return this.#keep(sessionId, NONE);
    });
  }

  #keep(sessionId: string, calls: Calls): Cursor {
    if (calls.all === 0) this.#calls.delete(sessionId);
    else this.#calls.set(sessionId, calls);
    return { name: CURSOR + sessionId, value: calls.all === 0 ? null : JSON.stringify(calls) };
  }

  #ended(sessionId: string, { gathering, all }: Calls, { outcome, reason }: SessionEnd, at: number): void {
    if (all === 0) return;
    const value = Math.round((gathering / all) * 1_000) / 1_000;
    const detail = `${gathering} of ${all} tool calls only read, listed or searched. The session’s end: ${reason}`;
    this.#tell(`session ${sessionId}: ${detail}`, {
      at,
      insight: { signal: SIGNAL, value, outcome, source: 'session', sessionId, detail },
    });
  }
}

interface SessionEnd {
  /** Not `failed`: that would ask for a person’s look, which the end itself does. */
  outcome: 'ended' | 'crashed' | 'left';
  reason: string;
}

function sessionEnd(value: Record<string, unknown>): SessionEnd {
  const exitCode = numberOf(value.exitCode);
  const isCrash = textOf(value.signal) !== null || (exitCode !== null && exitCode !== 0);
  return { outcome: isCrash ? 'crashed' : 'ended', reason: textOf(value.reason) ?? 'no reason given' };
}

function countCall({ gathering, all }: Calls, name: unknown): Calls {
  const plain = (textOf(name) ?? '').toLowerCase().replaceAll(/[^a-z]/g, '');
  return { gathering: gathering + (GATHERING.has(plain) ? 1 : 0), all: all + 1 };
}

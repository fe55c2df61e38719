import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf, numberOf, parseJson, textOf } from '@interlude/protocol/fields';
import type { LogAbout } from '../logger/logger';
import type { Cursor } from '../outbox/statements';

export interface ContextRatioOptions {
  log: (message: string, about: LogAbout) => void;
}

interface Calls {
  gathering: number;
  all: number;
}

const SIGNAL = 'context_ratio';
const CURSOR = 'tool-calls:';
const NONE: Calls = { gathering: 0, all: 0 };

/** Names of tools that gather context, of all agents, in lower-case letters only. */
const GATHERING: ReadonlySet<string> = new Set(
  [
    'read readfile readmanyfiles readmultiplefiles notebookread view viewfile viewimage',
    'ls list listdir listdirectory listfiles glob findfiles',
    'grep search searchfiles searchfilecontent codesearch toolsearch',
    'webfetch fetch fetchurl websearch googlewebsearch',
    'listmcpresources listmcpresourcestool readmcpresource readmcpresourcetool',
  ].flatMap((line) => line.split(' ')),
);

/** True unless INTERLUDE_CONTEXT_RATIO is `off`. */
export function isContextRatioEnabled(env: Record<string, string | undefined>): boolean {
  return env.INTERLUDE_CONTEXT_RATIO?.trim().toLowerCase() !== 'off';
}

/**
 * Measures how many tool calls of a session only gathered context: reading, listing and searching. Logged once at the
 * end of a session with the signal `context_ratio`.
 *
 * Ordering: a call is counted and stored with its start event.
 * Failure: a kill neither loses nor doubles a call. The log line and the reset of the count share a transaction with
 * the end of the session.
 */
export class ContextRatio {
  readonly #log: ContextRatioOptions['log'];
  readonly #calls = new Map<string, Calls>();

  constructor({ log }: ContextRatioOptions) {
    this.#log = log;
  }

  async restore(outbox: { cursors: (prefix: string) => Promise<Map<string, string>> }): Promise<void> {
    for (const [name, value] of await outbox.cursors(CURSOR)) {
      const { gathering, all } = fieldsOf(parseJson(value));
      this.#calls.set(name.slice(CURSOR.length), { gathering: numberOf(gathering) ?? 0, all: numberOf(all) ?? 0 });
    }
  }

  /**
   * Counts tool calls, including those of subagents.
   * @returns the events, with the count added to the end of the session, and cursors to store
   */
  count(sessionId: string, raw: readonly TimedEvent[]): { events: readonly TimedEvent[]; cursors: Cursor[] } {
    const before = this.#calls.get(sessionId) ?? NONE;
    let now = before;
    const counted = raw.map((one) => {
      const { occurredAt, event } = one;
      if (event.type === 'TOOL_CALL_START') now = countCall(now, event.toolCallName);
      if (event.type !== 'CUSTOM' || event.name !== CUSTOM.sessionEnded) return one;
      const [calls, value] = [now, fieldsOf(event.value)];
      now = NONE;
      this.#ended(sessionId, calls, sessionEnd(value), occurredAt);
      return calls.all === 0 ? one : { occurredAt, event: { ...event, value: { ...value, tool_calls: calls } } };
    });
    return { events: counted, cursors: now === before ? [] : [this.#keep(sessionId, now)] };
  }

  /** Reports the counts of sessions that the runner stops following before they end. */
  abandoned(reason: string, at: number): Cursor[] {
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
    this.#log(`session ${sessionId}: ${detail}`, {
      at,
      insight: { signal: SIGNAL, value, outcome, source: 'session', sessionId, detail },
    });
  }
}

interface SessionEnd {
  /** Not `failed`, which would flag the session for attention; its end already does. */
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

import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { fieldsOf, parseJson, textOf } from '@interlude/protocol/fields';
import type { RecordedKind } from '../recorded-kind';
import type { ToldEvent } from '../wire';
import { ClaudeAdapter, type ProcessExit } from './claude-adapter';

/** One line of a recording: what went into or came out of the Agent SDK, `t` milliseconds after the start. */
export interface RecordingLine {
  t: number;
  src: string;
  msg: unknown;
}

/**
 * @param text one line of a recording (JSON Lines)
 * @returns null for anything else, so that the caller can report which line it was
 */
export function parseRecordingLine(text: string): RecordingLine | null {
  const { t, src, msg } = fieldsOf(parseJson(text));
  return typeof t === 'number' && Number.isFinite(t) && typeof src === 'string' ? { t, src, msg } : null;
}

/** Recordings of the Agent SDK, of one session each. */
export const recorded: RecordedKind = {
  recognises: ({ fields }) => typeof fields.src === 'string' && FEEDS.has(fields.src),
  newReader({ sessionOf, newRunId }) {
    const sessionId = sessionOf('');
    const adapter = new ClaudeAdapter({ sessionId, newRunId });
    const told = (events: readonly TimedEvent[]): ToldEvent[] => events.map((one) => ({ sessionId, ...one }));
    return {
      dueAt: null,
      elapsed: () => [],
      ended: (end, now) => told(adapter.ended(now, end)),
      read: ({ at, fields: { src, msg } }, now) =>
        told(feedRecordingLine(adapter, { t: at, src: textOf(src) ?? '', msg }, now)),
    };
  },
};

/** Feeds one line to the adapter. Lines about the recording itself (`driver`, `stopTask`, `hook`) say nothing to it. */
export function feedRecordingLine(adapter: ClaudeAdapter, line: RecordingLine, now: number): TimedEvent[] {
  return FEEDS.get(line.src)?.(adapter, line.msg, now) ?? [];
}

type Feed = (adapter: ClaudeAdapter, msg: unknown, now: number) => TimedEvent[];

const FEEDS: ReadonlyMap<string, Feed> = new Map(
  Object.entries<Feed>({
    sdk: (adapter, msg, now) => adapter.read(msg, now),
    // The end of the input is recorded as a text, which has no uuid and is not sent.
    in: (adapter, msg, now) => adapter.sent(msg, now),
    canUseTool: (adapter, msg, now) => adapter.permissionAsked(msg, now),
    'canUseTool.result': (adapter, msg, now) => adapter.permissionAnswered(textOf(fieldsOf(msg).toolUseID), msg, now),
    'sdk.end': (adapter, _msg, now) => adapter.ended(now, { reason: 'exited' }),
    'sdk.error': (adapter, msg, now) => adapter.ended(now, exitOf(msg)),
  }),
);

/** `Error: Claude Code process terminated by signal SIGKILL`, `… exited with code 1`. */
function exitOf(msg: unknown): ProcessExit {
  const text = textOf(msg) ?? textOf(fieldsOf(msg).message) ?? 'failed';
  const code = /exited with code (\d+)/.exec(text)?.[1];
  return {
    reason: text.replace(/^(\w*Error: )+/, '').replace(/^Claude Code process /, ''),
    ...(code === undefined ? {} : { exitCode: Number(code) }),
  };
}

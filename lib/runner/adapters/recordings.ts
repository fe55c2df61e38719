import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { fieldsOf, isObject, parseJson, textOf } from '@interlude/protocol/fields';
import { AcpAdapter } from './acp/acp-adapter';
import { AgentApiAdapter } from './agentapi/agentapi-adapter';
import { AgUiAdapter } from './agui/agui-adapter';
import { runInputOf } from './agui/agui-frames';
import { ClaudeAdapter, type ProcessExit } from './claude/claude-adapter';
import { CodexAdapter } from './codex/codex-adapter';
import { ExecAdapter } from './codex/exec-adapter';
import { OpencodeAdapter } from './opencode/opencode-adapter';
import type { EmittedEvent, WireAdapter, WireAdapterOptions, WireEnd } from './wire';

const opencodeRecordings: RecordedKind = {
  recognizes({ fields: { dir, msg } }) {
    if (dir === 'out') return /^\/(session|sync|permission|question|global)\b/.test(String(fieldsOf(msg).path));
    const { type, properties, payload } = fieldsOf(msg);
    return (isObject(properties) && typeof type === 'string' && type.includes('.')) || isObject(payload);
  },
  newReader: (options) => frameReader(new OpencodeAdapter({ ...options, isReplay: true })),
};

/** Recordings of an app-server, and of the output of `codex exec --json`. */
const codexRecordings: RecordedKind = {
  recognizes({ fields: { msg } }) {
    if (!isObject(msg)) return false;
    const { method, params, type, userAgent } = { ...msg, ...(isObject(msg.result) ? msg.result : {}) };
    if (type === 'thread.started') return textOf(msg.thread_id) !== null;
    if (typeof userAgent === 'string' && 'codexHome' in (isObject(msg.result) ? msg.result : {})) return true;
    return typeof method === 'string' && /^(thread|turn)\/\w/.test(method) && isObject(params);
  },
  newReader,
};

/** The first recognized line selects the adapter. */
function newReader(options: WireAdapterOptions): RecordingReader {
  let reader = frameReader(new CodexAdapter({ ...options, isReplay: true }));
  let isDecided = false;
  return {
    get dueAt() {
      return reader.dueAt;
    },
    elapsed: (now) => reader.elapsed(now),
    ended: (end, now) => reader.ended(end, now),
    read(line, now) {
      const { msg } = line.fields;
      if (!isDecided && isObject(msg)) {
        isDecided = 'method' in msg || 'id' in msg || 'type' in msg;
        if (typeof msg.type === 'string' && !('method' in msg)) reader = frameReader(new ExecAdapter(options));
      }
      return reader.read(line, now);
    },
  };
}

/** One line of an Agent SDK recording, `t` milliseconds after the start. */
export interface RecordingLine {
  t: number;
  src: string;
  msg: unknown;
}

/** @returns null for a malformed line, so the caller can report its number */
export function parseRecordingLine(text: string): RecordingLine | null {
  const { t, src, msg } = fieldsOf(parseJson(text));
  return typeof t === 'number' && Number.isFinite(t) && typeof src === 'string' ? { t, src, msg } : null;
}

const claudeRecordings: RecordedKind = {
  recognizes: ({ fields }) => typeof fields.src === 'string' && FEEDS.has(fields.src),
  newReader({ sessionOf, newRunId }) {
    const sessionId = sessionOf('');
    const adapter = new ClaudeAdapter({ sessionId, newRunId });
    const withSession = (events: readonly TimedEvent[]): EmittedEvent[] => events.map((one) => ({ sessionId, ...one }));
    return {
      dueAt: null,
      elapsed: () => [],
      ended: (end, now) => withSession(adapter.ended(now, end)),
      read: ({ at, fields: { src, msg } }, now) =>
        withSession(feedRecordingLine(adapter, { t: at, src: textOf(src) ?? '', msg }, now)),
    };
  },
};

/** Feeds one line to the adapter. Ignores lines about the recording itself (`driver`, `stopTask`, `hook`). */
export function feedRecordingLine(adapter: ClaudeAdapter, line: RecordingLine, now: number): TimedEvent[] {
  return FEEDS.get(line.src)?.(adapter, line.msg, now) ?? [];
}

type Feed = (adapter: ClaudeAdapter, msg: unknown, now: number) => TimedEvent[];

const FEEDS: ReadonlyMap<string, Feed> = new Map(
  Object.entries<Feed>({
    sdk: (adapter, msg, now) => adapter.read(msg, now),
    // The end of input is recorded as a plain string without a uuid, so the adapter ignores it.
    in: (adapter, msg, now) => adapter.sent(msg, now),
    canUseTool: (adapter, msg, now) => adapter.requestOpened(msg, now),
    'canUseTool.result': (adapter, msg, now) => adapter.requestAnswered(textOf(fieldsOf(msg).toolUseID), msg, now),
    'sdk.end': (adapter, _msg, now) => adapter.ended(now, { reason: 'exited' }),
    'sdk.error': (adapter, msg, now) => adapter.ended(now, sdkExitOf(msg)),
  }),
);

/** `Error: Claude Code process terminated by signal SIGKILL`, `… exited with code 1`. */
function sdkExitOf(msg: unknown): ProcessExit {
  const text = textOf(msg) ?? textOf(fieldsOf(msg).message) ?? 'failed';
  const code = /exited with code (\d+)/.exec(text)?.[1];
  return {
    reason: text.replace(/^(\w*Error: )+/, '').replace(/^Claude Code process /, ''),
    ...(code === undefined ? {} : { exitCode: Number(code) }),
  };
}

const agUiRecordings: RecordedKind = {
  recognizes({ fields: { msg } }) {
    const { stream, body } = fieldsOf(msg);
    return stream === 'run' || stream === 'events' || runInputOf(body) !== null;
  },
  newReader: (options) => frameReader(new AgUiAdapter({ ...options, isReplay: true })),
};

const EVENTS: ReadonlySet<unknown> = new Set(['message_update', 'status_change', 'agent_error', 'screen']);

const agentApiRecordings: RecordedKind = {
  recognizes({ fields: { msg } }) {
    const { event, path, body } = fieldsOf(msg);
    return EVENTS.has(event) || (path === '/message' && typeof fieldsOf(body).content === 'string');
  },
  newReader: (options) => frameReader(new AgentApiAdapter({ ...options, isReplay: true })),
};

const acpRecordings: RecordedKind = {
  recognizes({ fields: { dir, msg } }) {
    const { jsonrpc, method, params } = fieldsOf(msg);
    if ((dir !== 'in' && dir !== 'out') || jsonrpc !== '2.0') return false;
    return (method === 'initialize' && typeof fieldsOf(params).protocolVersion === 'number') || OWN.has(String(method));
  },
  newReader: (options) => frameReader(new AcpAdapter({ ...options, isReplay: true })),
};

const OWN = new Set(['session/new', 'session/load', 'session/prompt', 'session/update']);

/** Recordable agent kinds, by name. */
export const RECORDED_KINDS: Readonly<Record<string, RecordedKind>> = {
  acp: acpRecordings,
  agentapi: agentApiRecordings,
  agui: agUiRecordings,
  claude: claudeRecordings,
  codex: codexRecordings,
  opencode: opencodeRecordings,
};

/** One line of a recording; the fields besides the time depend on the kind. */
export interface RecordedLine {
  /** Milliseconds since the start. */
  at: number;
  fields: Record<string, unknown>;
}

/** Reads the recordings of one agent kind. */
export interface RecordedKind {
  /** True if no other kind writes this line. */
  recognizes(line: RecordedLine): boolean;
  newReader(options: WireAdapterOptions): RecordingReader;
}

/** Replays one recording line by line. */
export interface RecordingReader extends Omit<WireAdapter, 'read'> {
  read(line: RecordedLine, now: number): EmittedEvent[];
}

/**
 * Wraps an adapter whose recordings hold a frame per line: `{"dir","at","msg"}`, with `{"exit"}` as the message when
 * the process ends.
 */
export function frameReader(adapter: WireAdapter): RecordingReader {
  return {
    get dueAt() {
      return adapter.dueAt;
    },
    elapsed: (now) => adapter.elapsed(now),
    ended: (end, now) => adapter.ended(end, now),
    read({ fields: { dir, msg } }, now) {
      const end = exitOf(msg);
      if (end !== null) return adapter.ended(end, now);
      return dir === 'in' || dir === 'out' ? adapter.read({ dir, msg }, now) : [];
    },
  };
}

function exitOf(msg: unknown): WireEnd | null {
  const exit = typeof msg === 'object' && msg !== null && 'exit' in msg ? msg.exit : null;
  if (typeof exit !== 'object' || exit === null) return null;
  const { code, signal, s, reason, isAsked, goesOn } = exit as Record<string, unknown>;
  const by = typeof signal === 'string' ? signal : typeof s === 'string' ? s : null;
  const exitCode = typeof code === 'number' ? code : null;
  // A runner recorded the reason, so it is complete.
  if (typeof reason === 'string') {
    const more = { ...(isAsked === true ? { isAsked } : {}), ...(typeof goesOn === 'string' ? { goesOn } : {}) };
    return { reason, exitCode, signal: by, ...more };
  }
  // The person recording stopped the agent.
  if (by === 'SIGTERM' || by === 'SIGINT') return { reason: `stopped by ${by}`, isAsked: true };
  const how = by !== null ? `terminated by signal ${by}` : exitCode === null ? 'ended' : `exited with code ${exitCode}`;
  return { reason: how, exitCode, signal: by };
}

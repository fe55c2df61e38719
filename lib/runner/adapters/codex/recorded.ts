import { isObject, textOf } from '@interlude/protocol/fields';
import { frameReader, type RecordedKind, type RecordingReader } from '../recorded-kind';
import type { WireAdapterOptions } from '../wire';
import { CodexAdapter } from './codex-adapter';
import { ExecAdapter } from './exec-adapter';

/** Both ways in which Codex is recorded: what passed to and from an app-server, and what `codex exec --json` printed. */
export const recorded: RecordedKind = {
  recognises({ fields: { msg } }) {
    if (!isObject(msg)) return false;
    const { method, params, type, userAgent } = { ...msg, ...(isObject(msg.result) ? msg.result : {}) };
    if (type === 'thread.started') return textOf(msg.thread_id) !== null;
    if (typeof userAgent === 'string' && 'codexHome' in (isObject(msg.result) ? msg.result : {})) return true;
    return typeof method === 'string' && /^(thread|turn)\/\w/.test(method) && isObject(params);
  },
  newReader,
};

/** The first line that is of one kind or the other decides. */
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

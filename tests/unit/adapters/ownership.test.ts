import { fieldsOf, isObject } from '@interlude/protocol/fields';
import type { RecordedLine } from '@interlude/runner/adapters/recordings';
import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import { describe, expect, test } from 'vitest';
import { CUT, playRecorded, recordedLines, recordingsOf } from '../../support/recordings';

/**
 * Events of a session stay in it, whatever other sessions do on the same connection: two interleaved recordings give
 * what each gives alone.
 */

/** The recording with other ids, as from another agent. */
function renamed(lines: readonly RecordedLine[], mark: string): RecordedLine[] {
  const ids = new Set<string>();
  const collect = (value: unknown, name = ''): void => {
    if (typeof value === 'string' && /id$/i.test(name) && value !== '') ids.add(value);
    else if (Array.isArray(value)) for (const one of value) collect(one, name.replace(/s$/, ''));
    else if (isObject(value)) for (const [key, one] of Object.entries(value)) collect(one, key);
  };
  for (const { fields } of lines) collect(fields.msg);
  const rename = (text: string) => {
    let out = text;
    for (const id of byLength) out = out.replaceAll(id, `${id}${mark}`);
    return out;
  };
  const byLength = [...ids].filter((id) => id.length > 8).sort((one, other) => other.length - one.length);
  const changed = (value: unknown, depth = 0): unknown => {
    if (typeof value === 'string') return rename(value);
    if (Array.isArray(value)) return value.map((one) => changed(one, depth + 1));
    if (!isObject(value)) return value;
    // JSON-RPC ids count from one per connection, and here there is one.
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [
        rename(key),
        depth === 0 && key === 'id' && typeof one === 'number' ? one + 100_000 : changed(one, depth + 1),
      ]),
    );
  };
  return lines.map(({ at, fields }) => ({ at, fields: { ...fields, msg: changed(fields.msg) } }));
}

/** By time; an HTTP request and its response stay together. */
function interleaved(one: readonly RecordedLine[], other: readonly RecordedLine[]): RecordedLine[] {
  const left: [RecordedLine[], RecordedLine[]] = [[...one], [...other]];
  const merged: RecordedLine[] = [];
  while (left[0].length > 0 || left[1].length > 0) {
    const from = (left[0][0]?.at ?? Number.POSITIVE_INFINITY) <= (left[1][0]?.at ?? Number.POSITIVE_INFINITY) ? 0 : 1;
    const line = left[from].shift() as RecordedLine;
    merged.push(line);
    if (line.fields.dir !== 'out' || !('path' in fieldsOf(line.fields.msg))) continue;
    while (left[from].length > 0) {
      const next = left[from].shift() as RecordedLine;
      merged.push({ ...next, at: line.at });
      if ('status' in fieldsOf(next.fields.msg)) break;
    }
  }
  return merged;
}

/** Events of each session without generated ids. */
function bySession(told: readonly EmittedEvent[]): string[] {
  const sessions = new Map<string, string[]>();
  for (const { sessionId, event } of told) {
    const { type, name, delta, content, value } = event;
    // Frames without a session concern the connection and are only stored.
    if (type === 'RAW') continue;
    const { status, outcome } = fieldsOf(value);
    const { turn, trigger } = event.metadata?.interlude ?? {};
    const line = [type, name, delta, content, status, outcome, turn, trigger?.kind].filter(Boolean).join(' ');
    sessions.set(sessionId, [...(sessions.get(sessionId) ?? []), line.replaceAll('#2', '')]);
  }
  return [...sessions.values()].map((lines) => lines.join('\n')).sort();
}

const withoutExit = (lines: readonly RecordedLine[]) => lines.filter(({ fields }) => !('exit' in fieldsOf(fields.msg)));

const KINDS = ['acp', 'codex', 'opencode'];
/** A connection opens once. */
function joining(lines: readonly RecordedLine[]): RecordedLine[] {
  const opening = lines.find(({ fields }) => fieldsOf(fields.msg).method === 'initialize');
  if (opening === undefined) return [...lines];
  const { id } = fieldsOf(opening.fields.msg);
  const isAnswer = ({ dir, msg }: RecordedLine['fields']) =>
    dir === 'in' && fieldsOf(msg).id === id && fieldsOf(msg).method === undefined;
  return lines.filter((line) => line !== opening && !isAnswer(line.fields));
}

/**
 * `codex exec` has one session per connection, OpenCode's v2 API is another interface, and two ACP recordings have
 * several sessions.
 */
const ALONE = new Set(['exec-json', 'v2-api', 'claude-air-killed', 'opencode-killed']);

/** Recordings of the same agent: capabilities are negotiated once per connection. */
function besides(kind: string, name: string, names: readonly string[]): string {
  if (kind !== 'acp') return 'background';
  const agent = name.replace(/-(three-tasks|three-tasks-raw|[a-z]+)$/, '');
  return names.find((one) => one === `${agent}-permission`) ?? `${agent}-tool`;
}

describe.each(KINDS)('on one connection of the kind %s', (kind) => {
  const names = recordingsOf(kind).filter((name) => !ALONE.has(name));

  test.each(names)('%s and another session emit the same events as alone', (name) => {
    const one = withoutExit(recordedLines(kind, name));
    const two = renamed(withoutExit(recordedLines(kind, besides(kind, name, names))), '#2');
    const alone = [...playRecorded(kind, one, CUT), ...playRecorded(kind, two, CUT).map(asSecond)];
    const together = playRecorded(kind, interleaved(one, joining(two)), CUT);
    expect(bySession(together)).toEqual(bySession(alone));
  });
});

function asSecond(one: EmittedEvent): EmittedEvent {
  return { ...one, sessionId: `second-${one.sessionId}` };
}

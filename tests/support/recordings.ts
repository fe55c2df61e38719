import { appendFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { eventRecordSchema } from '@interlude/protocol/envelope';
import { fieldsOf } from '@interlude/protocol/fields';
import { MAX_RECORD_BYTES } from '@interlude/protocol/limits';
import { ClaudeAdapter } from '@interlude/runner/adapters/claude/claude-adapter';
import {
  feedRecordingLine,
  parseRecordingLine,
  RECORDED_KINDS,
  type RecordedLine,
  type RecordingLine,
} from '@interlude/runner/adapters/recordings';
import type { EmittedEvent, WireEnd } from '@interlude/runner/adapters/wire';
import { expect } from 'vitest';

const FOLDER = 'tests/fixtures/recordings';

/** Names of a kind's recordings. */
export function recordingsOf(kind: string): string[] {
  return readdirSync(`${FOLDER}/${kind}`)
    .filter((file) => file.endsWith('.jsonl'))
    .map((file) => file.replace(/\.jsonl$/, ''))
    .sort();
}

export function recordedLines(kind: string, name: string): RecordedLine[] {
  return readFileSync(`${FOLDER}/${kind}/${name}.jsonl`, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const fields = JSON.parse(line) as Record<string, unknown>;
      return { at: Number(fields.at ?? fields.t), fields };
    });
}

export const CUT: WireEnd = { reason: 'the recording ends here' };

/**
 * Plays lines through a kind's adapter with the recorded timing.
 *
 * @param end how the agent ends after the last line; null: it keeps running
 */
export function playRecorded(kind: string, lines: readonly RecordedLine[], end: WireEnd | null = CUT): EmittedEvent[] {
  let runs = 0;
  const sessions = new Map<string, string>();
  const reader = RECORDED_KINDS[kind]?.newReader({
    newRunId: () => `r${++runs}`,
    sessionOf(nativeId) {
      const session = sessions.get(nativeId) ?? `s${sessions.size + 1}`;
      sessions.set(nativeId, session);
      return session;
    },
  });
  if (reader === undefined) throw new Error(`unknown kind ${kind}`);
  const emitted: EmittedEvent[] = [];
  for (const line of lines) {
    for (let due = reader.dueAt; due !== null && due <= line.at; due = reader.dueAt)
      emitted.push(...reader.elapsed(due));
    emitted.push(...reader.read(line, line.at));
  }
  if (end !== null) emitted.push(...reader.ended(end, lines.at(-1)?.at ?? 0));
  return emitted;
}

/**
 * Asserts invariants of an adapter's events, wherever the recording was cut: records that the server accepts; turns
 * that open and close in sequence; texts, reasoning and calls that start once and end; exactly one end per task and
 * request; nothing open after the process ends.
 */
export function expectValidEvents(emitted: readonly EmittedEvent[]): void {
  const once = new Set<string>();
  const isNew = (what: string) => {
    expect(once.has(what), `${what} occurs twice`).toBe(false);
    once.add(what);
  };
  const turns = new Map<string, string>();
  const open = new Set<string>();
  for (const [index, { sessionId, occurredAt, event }] of emitted.entries()) {
    const record = { seq: index + 1, kind: 'event', agentId: 'a', sessionId, occurredAt, event };
    expect(eventRecordSchema.safeParse(record).error).toBeUndefined();
    expect(JSON.stringify(record).length).toBeLessThan(MAX_RECORD_BYTES);
    const value = fieldsOf(event.value);
    const in_ = (id: unknown) => `${sessionId} ${id}`;
    const starts = (kind: string, id: unknown) => {
      isNew(`the start of ${kind} ${in_(id)}`);
      open.add(`${kind} ${in_(id)}`);
    };
    const ends = (kind: string, id: unknown) => {
      expect(open.delete(`${kind} ${in_(id)}`), `${kind} ${in_(id)} ends without a start`).toBe(true);
    };
    switch (event.type) {
      case 'RUN_STARTED':
        expect(turns.get(sessionId), `a turn starts in ${sessionId} while one is open`).toBeUndefined();
        isNew(`run ${event.runId}`);
        turns.set(sessionId, String(event.runId));
        break;
      case 'RUN_FINISHED':
      case 'RUN_ERROR':
        expect(event.runId).toBe(turns.get(sessionId));
        turns.delete(sessionId);
        break;
      case 'TEXT_MESSAGE_START':
        starts('text', event.messageId);
        break;
      case 'TEXT_MESSAGE_END':
        open.delete(`text ${in_(event.messageId)}`);
        break;
      case 'REASONING_START':
        starts('thought', event.messageId);
        break;
      case 'REASONING_END':
        open.delete(`thought ${in_(event.messageId)}`);
        break;
      case 'TOOL_CALL_START':
        starts('call', event.toolCallId);
        break;
      case 'TOOL_CALL_END':
        ends('call', event.toolCallId);
        break;
      case 'TOOL_CALL_RESULT':
        isNew(`the result of ${in_(event.toolCallId)}`);
        break;
      case 'CUSTOM':
        if (event.name === 'task:started') starts('task', `${value.task_id} ${value.run_id ?? ''}`);
        if (event.name === 'task:completed') {
          const named = open.delete(`task ${in_(`${value.task_id} ${value.run_id ?? ''}`)}`);
          // A run that started without an id takes the id of its end.
          if (!named) open.delete(`task ${in_(`${value.task_id} `)}`);
        }
        if (event.name === 'request:opened') {
          expect(open.has(`request ${in_(value.request_id)}`)).toBe(false);
          open.add(`request ${in_(value.request_id)}`);
        }
        if (event.name === 'request:resolved') ends('request', value.request_id);
    }
  }
  expect([...turns], 'a turn is open at the end').toEqual([]);
  expect([...open], 'something is open at the end').toEqual([]);
}

/** Renders events as lines with deltas merged, as in golden files. */
export function eventLines(emitted: readonly EmittedEvent[]): string {
  const lines: string[] = [];
  const growing: { now: { key: string; text: string } | null } = { now: null };
  const isOneSession = new Set(emitted.map(({ sessionId }) => sessionId)).size < 2;
  const flush = () => {
    if (growing.now !== null) lines.push(`${growing.now.key}${JSON.stringify(growing.now.text)}`);
    growing.now = null;
  };
  for (const { sessionId, event } of emitted) {
    const { type, metadata, subagentRunId, ...rest } = event;
    const interlude = metadata?.interlude === undefined ? '' : ` ${JSON.stringify(metadata.interlude)}`;
    const by = subagentRunId === undefined ? '' : ` <${subagentRunId}>`;
    const where = isOneSession ? '' : `${sessionId}  `;
    if (typeof rest.delta === 'string') {
      const key = `${where}${type} ${rest.messageId ?? rest.toolCallId}${by}${interlude} `;
      if (growing.now?.key !== key) flush();
      growing.now = { key, text: (growing.now?.text ?? '') + rest.delta };
      continue;
    }
    flush();
    const { threadId: _, rawEvent: __, ...fields } = rest;
    const name = type === 'CUSTOM' ? `CUSTOM ${fields.name}` : type;
    const body = type === 'CUSTOM' ? fields.value : fields;
    lines.push(`${where}${name}${by} ${JSON.stringify(body)}${interlude}`);
  }
  flush();
  return `${lines.join('\n')}\n`;
}

/** A recorded terminal session of Claude Code: hook inputs and transcript lines. */
export type TerminalStep =
  | { kind: 'hook'; event: string; input: Record<string, unknown> }
  | { kind: 'line'; sessionId: string; file: string; text: string };

const folder = fileURLToPath(new URL('../fixtures/recordings/hooks/', import.meta.url));
const PROJECTS = '/home/agent/config/projects/';

/** @param home replaces the recorded home in transcript paths */
export function readTerminalRecording(name: string, home: string): TerminalStep[] {
  const text = readFileSync(join(folder, `${name}.jsonl`), 'utf8').replaceAll(PROJECTS, `${home}/`);
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { src: string; msg: Record<string, string> })
    .flatMap(({ src, msg }): TerminalStep[] => {
      if (src === 'hook') return [{ kind: 'hook', event: msg.hook_event_name as string, input: msg }];
      if (src !== 'transcript') return [];
      const { file, text } = msg as { file: string; text: string };
      const isSubagent = basename(dirname(file)) === 'subagents';
      const sessionId = isSubagent ? basename(dirname(dirname(file))) : basename(file, '.jsonl');
      return [{ kind: 'line', sessionId, file, text }];
    });
}

/** @param madeAt replaces the recorded time (epoch milliseconds), to match hooks that run now */
export function writeLine({ file, text }: { file: string; text: string }, madeAt: number | null = null): void {
  mkdirSync(dirname(file), { recursive: true });
  const timestamp = madeAt === null ? '$&' : `"timestamp":"${new Date(madeAt).toISOString()}"`;
  appendFileSync(file, `${text.replace(/"timestamp":"[^"]*"/g, timestamp)}\n`);
}

export function recordingLines(file: string): RecordingLine[] {
  return readFileSync(new URL(`../fixtures/recordings/${file}.jsonl`, import.meta.url), 'utf8')
    .split('\n')
    .filter((text) => text !== '')
    .map((text) => {
      const line = parseRecordingLine(text);
      if (line === null) throw new Error(`invalid recording line: ${text.slice(0, 80)}`);
      return line;
    });
}

/** Runs a recording through the Claude adapter. One group of events per line. */
export function adaptRecording(file: string, sessionId = 's1'): { at: number; events: AgUiEvent[] }[] {
  let runs = 0;
  const adapter = new ClaudeAdapter({ sessionId, newRunId: () => `r${++runs}` });
  const start = 1_795_170_000_000;
  return recordingLines(file).map((line) => ({
    at: start + line.t,
    events: feedRecordingLine(adapter, line, start + line.t).map((output) => output.event),
  }));
}

/** The agent's own texts (without subagents) from the recording's complete messages, in order. */
export function assistantTexts(file: string): string[] {
  return recordingLines(file).flatMap(({ src, msg }) => {
    const message = msg as {
      type?: string;
      parent_tool_use_id?: string | null;
      message?: { content?: unknown };
    } | null;
    if (src !== 'sdk' || message?.type !== 'assistant' || message.parent_tool_use_id) return [];
    const content = message.message?.content;
    if (!Array.isArray(content)) return [];
    return content.filter((block) => block.type === 'text').map((block) => String(block.text));
  });
}

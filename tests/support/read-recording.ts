import { readFileSync } from 'node:fs';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { ClaudeAdapter } from '@interlude/runner/adapters/claude/claude-adapter';
import { feedRecordingLine, parseRecordingLine, type RecordingLine } from '@interlude/runner/adapters/recordings';

export function recordingLines(file: string): RecordingLine[] {
  return readFileSync(new URL(`../fixtures/recordings/${file}.jsonl`, import.meta.url), 'utf8')
    .split('\n')
    .filter((text) => text !== '')
    .map((text) => {
      const line = parseRecordingLine(text);
      if (line === null) throw new Error(`not a line of a recording: ${text.slice(0, 80)}`);
      return line;
    });
}

/** A recording through the Claude adapter, one group of events for each line of it. */
export function adaptRecording(file: string, sessionId = 's1'): { at: number; events: AgUiEvent[] }[] {
  let runs = 0;
  const adapter = new ClaudeAdapter({ sessionId, newRunId: () => `r${++runs}` });
  const start = 1_795_170_000_000;
  return recordingLines(file).map((line) => ({
    at: start + line.t,
    events: feedRecordingLine(adapter, line, start + line.t).map((output) => output.event),
  }));
}

/** Every text the agent itself (no subagent) said, as the recording's whole messages have it, in order. */
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

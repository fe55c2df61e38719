import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TimedEvent } from '@interlude/protocol/ag-ui';
import { ClaudeAdapter } from '@interlude/runner/adapters/claude/claude-adapter';
import { feedRecordingLine, parseRecordingLine, type RecordingLine } from '@interlude/runner/adapters/recordings';

const FOLDER = fileURLToPath(new URL('../../fixtures/recordings/', import.meta.url));

/** Recordings of real Claude Code runs, and those of the demo. */
export const RECORDINGS = [...names(''), ...names('demo/')];

export function recordingLines(name: string): RecordingLine[] {
  return readFileSync(`${FOLDER}${name}.jsonl`, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line, index) => {
      const parsed = parseRecordingLine(line);
      if (parsed === null) throw new Error(`${name}: line ${index + 1} is no recording line`);
      return parsed;
    });
}

export function newAdapter(): ClaudeAdapter {
  let runs = 0;
  return new ClaudeAdapter({ sessionId: 's1', newRunId: () => `r${++runs}` });
}

export function play(lines: readonly RecordingLine[], adapter = newAdapter()): TimedEvent[] {
  return lines.flatMap((line) => feedRecordingLine(adapter, line, line.t));
}

function names(folder: string): string[] {
  return readdirSync(`${FOLDER}${folder}`)
    .filter((file) => file.endsWith('.jsonl'))
    .map((file) => folder + file.replace('.jsonl', ''))
    .sort();
}

import { appendFileSync, mkdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A recorded session of Claude Code in a terminal: what its hooks were given and what its transcripts gained. */
export type TerminalStep =
  | { kind: 'hook'; event: string; input: Record<string, unknown> }
  | { kind: 'line'; sessionId: string; file: string; text: string };

const folder = fileURLToPath(new URL('../fixtures/recordings/hooks/', import.meta.url));
const PROJECTS = '/home/agent/config/projects/';

/** @param home where the transcripts are written instead */
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

/** @param madeAt instead of when it was recorded, epoch milliseconds: hooks that run beside it run then */
export function writeLine({ file, text }: { file: string; text: string }, madeAt: number | null = null): void {
  mkdirSync(dirname(file), { recursive: true });
  const timestamp = madeAt === null ? '$&' : `"timestamp":"${new Date(madeAt).toISOString()}"`;
  appendFileSync(file, `${text.replace(/"timestamp":"[^"]*"/g, timestamp)}\n`);
}

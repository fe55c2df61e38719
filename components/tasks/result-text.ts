import type { Task, TaskOutput } from '@interlude/protocol/read-models';
import { isBoilerplate } from './task-words';

/** Longest excerpt of the output, in UTF-16 units: its end. */
const MOST_OUTPUT = 4_000;

/** The message that carries a task's result to its agent. */
export function resultText(task: Task, output: TaskOutput | null): string {
  const { id, description, status, exitCode, summary, error, outputFile } = task;
  const name = description === id ? id : `“${description}” (${id})`;
  const code = exitCode === null || exitCode === 0 ? '' : `, exit code ${exitCode}`;
  const written = output?.parts.at(-1)?.text.trimEnd() ?? '';
  return [
    `The background task ${name} has ended: ${status}${code}.`,
    summary !== null && !isBoilerplate(task) ? summary : '',
    error ?? '',
    written === '' ? '' : `The end of its output:\n${endOf(written)}`,
    outputFile === null ? '' : `All of its output: ${outputFile}`,
  ]
    .filter((part) => part !== '')
    .join('\n\n');
}

/** Starts at a line break, if the excerpt has one. */
function endOf(text: string): string {
  if (text.length <= MOST_OUTPUT) return text;
  const end = text.slice(-MOST_OUTPUT);
  const line = end.indexOf('\n');
  return line === -1 ? end : end.slice(line + 1);
}

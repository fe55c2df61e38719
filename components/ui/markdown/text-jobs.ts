import { highlight } from './highlight';
import { parseBlocks } from './parse';

/** Work on texts that may take longer than a frame. */
const JOBS = {
  parse: (text: string) => parseBlocks(text),
  highlight: (code: string, language: string) => highlight(code, language),
};

export type TextJob = {
  [Kind in keyof typeof JOBS]: [kind: Kind, ...args: Parameters<(typeof JOBS)[Kind]>];
}[keyof typeof JOBS];
export type TextResult<Job extends TextJob> = ReturnType<(typeof JOBS)[Job[0]]>;

export function runTextJob<Job extends TextJob>([kind, ...args]: Job): TextResult<Job> {
  return (JOBS[kind] as (...args: string[]) => TextResult<Job>)(...args);
}

/** One line for people, beside what a command prints. */
export function say(message: string): void {
  process.stderr.write(`interlude: ${message}\n`);
}

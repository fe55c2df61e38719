/** One line for people, on stderr, apart from a command's output. */
export function say(message: string): void {
  process.stderr.write(`interlude: ${message}\n`);
}

import { type ChildProcess, spawn } from 'node:child_process';
import { shellWord } from '@interlude/protocol/shell-word.mjs';
import { withinPatience } from './patience';

/** A program with a terminal before it, and somebody who reads and types. By `script`, which every Debian has. */
export class InTerminal {
  readonly #child: ChildProcess;
  readonly #watchers = new Set<() => void>();
  /** What the terminal has shown so far. */
  shown = '';
  readonly ended: Promise<number | null>;

  constructor(args: readonly string[], env: NodeJS.ProcessEnv, cwd: string) {
    const command = args.map(shellWord).join(' ');
    this.#child = spawn('script', ['-qec', command, '/dev/null'], { env, cwd, stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child.stdout?.on('data', (chunk) => {
      this.shown += chunk;
      for (const look of this.#watchers) look();
    });
    this.ended = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('close', (code) => resolve(code));
    });
  }

  type(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Resolves when the terminal shows this. */
  async shows(words: string): Promise<void> {
    if (this.shown.includes(words)) return;
    await withinPatience(
      () => `the terminal does not show "${words}" but: ${this.shown}`,
      new Promise<void>((resolve) => {
        const look = () => {
          if (!this.shown.includes(words)) return;
          this.#watchers.delete(look);
          resolve();
        };
        this.#watchers.add(look);
      }),
    );
  }

  /** Hangs up, as a closed window does. */
  close(): void {
    this.#child.kill('SIGKILL');
  }
}

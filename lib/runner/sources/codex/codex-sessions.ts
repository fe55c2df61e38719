import type { CodexAdapter } from '../../adapters/codex/codex-adapter';
import type { SourceSurroundings } from '../../host/source';
import type { CodexConnection } from './codex-connection';
import { CodexSession } from './codex-session';

/** The sessions of one source, and through which connection each can be spoken to now. */
export class CodexSessions {
  readonly #around: SourceSurroundings;
  readonly #adapter: CodexAdapter;
  readonly #sessions = new Map<string, CodexSession>();
  readonly #waiting = new Set<() => void>();
  #ready: { connection: CodexConnection; threads: Map<string, string> } | null = null;
  #isOver = false;

  constructor(around: SourceSurroundings, adapter: CodexAdapter) {
    this.#around = around;
    this.#adapter = adapter;
  }

  get all(): readonly CodexSession[] {
    return [...this.#sessions.values()];
  }

  get(sessionId: string): CodexSession | undefined {
    return this.#sessions.get(sessionId);
  }

  /** The session, with what processes before this one have stored of it. */
  async recall(sessionId: string): Promise<CodexSession> {
    const known = this.#sessions.get(sessionId);
    if (known !== undefined) return known;
    const ready = () => this.#whenReady(sessionId);
    const session = await CodexSession.recall({ sessionId, around: this.#around, adapter: this.#adapter, ready });
    const meanwhile = this.#sessions.get(sessionId);
    if (meanwhile !== undefined) return meanwhile;
    this.#sessions.set(sessionId, session);
    return session;
  }

  /** Whether anything can be asked now. */
  get isConnected(): boolean {
    return this.#ready !== null;
  }

  /** All of the thread's history is told: its session can be spoken to. */
  isReady(connection: CodexConnection, sessionId: string, threadId: string): void {
    if (this.#ready?.connection !== connection) this.#ready = { connection, threads: new Map() };
    this.#ready.threads.set(sessionId, threadId);
    this.#look();
  }

  disconnected(): void {
    this.#ready = null;
  }

  /** Nothing can be said any more. */
  end(): void {
    this.#isOver = true;
    this.#look();
    for (const { wakes } of this.#sessions.values()) wakes?.close();
  }

  /** Nothing runs, and nothing is to be answered. */
  get isQuiet(): boolean {
    return this.all.every(({ sessionId, inHand }) => {
      const { turn, tasks } = this.#around.openWork(sessionId);
      return turn === null && tasks.length === 0 && inHand.all.length === 0;
    });
  }

  async #whenReady(sessionId: string): Promise<{ connection: CodexConnection; threadId: string }> {
    for (;;) {
      if (this.#isOver) throw new Error('the runner has ended');
      const { connection, threads } = this.#ready ?? {};
      const threadId = threads?.get(sessionId);
      if (connection !== undefined && threadId !== undefined) return { connection, threadId };
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  #look(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { NOTHING_OPEN, type OpenWork, workAfter } from '@interlude/protocol/lifecycle/open-session';
import type { AttachmentFile } from '@interlude/runner/host/attachment-store';
import type { PendingReply } from '@interlude/runner/host/pending-replies';
import type { SourceContext } from '@interlude/runner/host/source';

/** What a host does for its source, in memory: what the source told, and what is open by that. */
export class MemorySurroundings implements SourceContext {
  readonly told: { sessionId: string; occurredAt: number; event: AgUiEvent }[];
  readonly stored: Map<string, string>;
  onTold = () => {};
  readonly #open: Map<string, OpenWork>;
  readonly #owed: () => PendingReply[];
  #isDeaf = false;

  /** @param before those of a process that was killed */
  constructor(owed: () => PendingReply[] = () => [], before?: MemorySurroundings) {
    this.#owed = owed;
    this.told = [...(before?.told ?? [])];
    this.stored = new Map(before?.stored);
    this.#open = new Map(before === undefined ? [] : before.#open);
  }

  /** Its process was killed: nothing it says is stored any more. */
  deafen(): void {
    this.#isDeaf = true;
  }

  get sessionIds(): string[] {
    return [...this.#open.keys()];
  }

  get events(): AgUiEvent[] {
    return this.told.map(({ event }) => event);
  }

  readonly emit: SourceContext['emit'] = async (sessionId, events, cursors = []) => {
    if (this.#isDeaf) return;
    this.onTold();
    this.told.push(...events.map((one) => ({ sessionId, ...one })));
    this.#open.set(sessionId, workAfter(this.openWork(sessionId), events));
    for (const { name, value } of cursors) {
      if (value === null) this.stored.delete(name);
      else this.stored.set(name, value);
    }
  };

  readonly announceSession: SourceContext['announceSession'] = (sessionId, _at, cursors) =>
    this.emit(sessionId, [], cursors);
  readonly openWork = (sessionId: string) => this.#open.get(sessionId) ?? NOTHING_OPEN;
  readonly cursors = async (prefix: string) => new Map([...this.stored].filter(([name]) => name.startsWith(prefix)));
  readonly resolveFiles: SourceContext['resolveFiles'] = async (_, files) => this.filesHere?.([...files]) ?? [...files];
  /** Where the files of messages in hand are by now. */
  filesHere: ((files: AttachmentFile[]) => AttachmentFile[]) | null = null;
  readonly pendingReplies = () => this.#owed();
  readonly toolServer = () => null;
  readonly callTool = () => async () => ({ text: '', isError: false });
  /** How commands ended after all, by their ids. */
  readonly reported: Parameters<SourceContext['report']>[] = [];
  readonly report: SourceContext['report'] = (...reported) => void this.reported.push(reported);
  readonly changed = () => undefined;
  readonly failRunner = () => undefined;
  /** Why the runner was asked to end in good order. */
  overFor: string | null = null;
  readonly endRunner = (reason: string) => {
    this.overFor ??= reason;
  };
  /** Its log, a line each: `warn …`. */
  readonly logged: string[] = [];
  readonly log: SourceContext['log'] = (level, message) => void this.logged.push(`${level} ${message}`);
}

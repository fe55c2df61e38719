import { type Fields, textOf } from '@interlude/protocol/fields';
import { remember } from '../remember';
import type { SessionWriter } from '../writer/session-writer';
import type { Speaker } from '../writer/speaker';
import { type Commands, GOES_ON } from './commands';
import { callOf, thoughtOf } from './items';
import { keptValue } from './kept-value';
import type { Turns } from './turns';

type Kind = 'text' | 'thought' | 'call';

/** What has been told of the items of the turn that is open. */
export interface ItemsPlace {
  begun: { id: string; kind: Kind }[];
  completed: string[];
}

const MAX_KNOWN = 4_000;
/** Most complete items of one turn that its place names. */
const MAX_DONE = 512;
/** Calls whose arguments don't change any more once they have begun. */
const COMPLETE_AT_START = new Set(['commandExecution', 'mcpToolCall', 'dynamicToolCall', 'sleep']);

/**
 * The items of one thread. Deltas may be missing, or told twice; the completed item is the truth, and is told once,
 * whether it comes live or from the thread's history.
 */
export class ToldItems {
  readonly #writer: SessionWriter;
  readonly #turns: Turns;
  readonly #commands: Commands;
  readonly #completed = new Map<string, true>();
  readonly #begun = new Map<string, Kind>();
  /** Begun by another process: how far is not known. */
  readonly #begunBefore = new Map<string, true>();
  /** Items whose beginning this connection has heard: only of those do deltas say all there is. */
  readonly #heard = new Map<string, true>();
  #done: string[] = [];
  #revision = 0;

  constructor(writer: SessionWriter, turns: Turns, commands: Commands) {
    this.#writer = writer;
    this.#turns = turns;
    this.#commands = commands;
  }

  get place(): ItemsPlace {
    return { begun: [...this.#begun].map(([id, kind]) => ({ id, kind })), completed: this.#done };
  }

  /** Another one whenever `place` has changed. */
  get revision(): number {
    return this.#revision;
  }

  /** Goes on in the turn that is open. */
  takeUp({ begun, completed }: ItemsPlace): void {
    this.#done = completed;
    for (const id of completed) remember(this.#completed, id, true, MAX_KNOWN);
    for (const { id, kind } of begun) {
      remember(this.#begun, id, kind, MAX_KNOWN);
      remember(this.#begunBefore, id, true, MAX_KNOWN);
    }
    const named = (kind: Kind) => begun.filter((one) => one.kind === kind).map(({ id }) => id);
    const turnId = this.#turns.running;
    this.#voice(turnId).takeUp({ texts: named('text'), thoughts: named('thought'), calls: named('call') });
  }

  started(turnId: string | null, item: Fields): void {
    const id = textOf(item.id);
    if (id === null || this.#completed.has(id)) return;
    const isNew = !this.#heard.has(id);
    this.#turns.enter(turnId, item);
    remember(this.#heard, id, true, MAX_KNOWN);
    const speaker = this.#voice(turnId);
    const call = callOf(item);
    const text = textOf(item.text);
    if (call !== null) {
      this.#begins(turnId, id, 'call');
      speaker.call(id, call.name);
      speaker.args(id, call.args);
      if (COMPLETE_AT_START.has(String(item.type))) speaker.endCall(id);
      if (item.type === 'commandExecution' && turnId !== null) this.#commands.started(id, turnId, item);
    } else if (item.type === 'userMessage') this.#turns.heardUser(turnId, id, item, isNew);
    else if (text !== null && (item.type === 'agentMessage' || item.type === 'plan')) {
      this.#begins(turnId, id, 'text');
      speaker.sayWhole('text', id, text);
    }
  }

  delta(turnId: string | null, id: string, kind: 'text' | 'thought', delta: string): void {
    if (delta === '' || this.#completed.has(id) || this.#begunBefore.has(id) || !this.#heard.has(id)) return;
    this.#turns.enter(turnId, {});
    this.#begins(turnId, id, kind);
    this.#voice(turnId).say(kind, id, delta);
  }

  wrote(id: string, delta: string): void {
    if (this.#heard.has(id)) this.#commands.wrote(id, delta);
  }

  completed(turnId: string | null, item: Fields): void {
    const id = textOf(item.id);
    if (id === null || this.#completed.has(id)) return;
    this.#turns.enter(turnId, item);
    remember(this.#completed, id, true, MAX_KNOWN);
    if (this.#turns.open?.turnId === turnId) this.#done = [...this.#done, id].slice(-MAX_DONE);
    this.#begun.delete(id);
    this.#revision += 1;
    if (item.type === 'commandExecution' && this.#commandEnded(turnId, id, item)) return;
    const speaker = this.#voice(turnId);
    const call = callOf(item);
    if (call === null) this.#said(turnId, id, item, speaker);
    else {
      speaker.call(id, call.name);
      speaker.args(id, call.args);
      speaker.result(id, call.result, { isError: call.isError, edits: call.edits });
    }
  }

  /** The commands that Codex says run in the background. */
  listed(terminals: readonly Fields[], now: number): void {
    const ids = new Set(terminals.flatMap(({ itemId }) => textOf(itemId) ?? []));
    this.#commands.listed(ids, now);
    const { open } = this.#turns;
    for (const terminal of terminals) {
      const id = textOf(terminal.itemId);
      if (id === null || this.#commands.has(id) || this.#completed.has(id)) continue;
      remember(this.#heard, id, true, MAX_KNOWN);
      // In a turn it may be the turn's own command, which may yet end in it.
      if (open !== null) this.started(open.turnId, { ...terminal, id, type: 'commandExecution' });
      else this.#commands.found(id, terminal, this.#turns.taskOf(null));
    }
  }

  /** The turn is about to end: what still runs of it goes on. */
  turnEnding(turnId: string): void {
    const speaker = this.#voice(turnId);
    for (const id of this.#commands.turnEnded(turnId, this.#turns.taskOf(turnId))) speaker.result(id, GOES_ON);
    this.turnGone();
  }

  turnGone(): void {
    this.#done = [];
    this.#begun.clear();
    this.#begunBefore.clear();
    this.#revision += 1;
  }

  /** The connection is another one: what was said meanwhile was missed. */
  reconnected(): void {
    this.#heard.clear();
  }

  #said(turnId: string | null, id: string, item: Fields, speaker: Speaker): void {
    const text = textOf(item.text) ?? '';
    switch (item.type) {
      case 'userMessage':
        this.#turns.heardUser(turnId, id, item, !this.#heard.has(id));
        return;
      case 'agentMessage':
      case 'plan':
        if (text !== '') this.#turns.said(text);
        speaker.sayWhole('text', id, text);
        break;
      case 'reasoning':
        speaker.sayWhole('thought', id, thoughtOf(item));
        break;
      case 'exitedReviewMode':
        speaker.sayWhole('text', id, textOf(item.review) ?? '');
        break;
      case 'enteredReviewMode':
        this.#writer.notice(`A review begins: ${textOf(item.review) ?? ''}`);
        return;
      case 'contextCompaction':
        this.#writer.notice('Codex compacted the context of this thread.');
        return;
      case 'subAgentActivity':
        return;
      default:
        this.#writer.custom(`codex:item/${textOf(item.type) ?? 'unknown'}`, keptValue(item));
        return;
    }
    speaker.endText();
  }

  /** @returns whether it was a background task, or nothing is known of it */
  #commandEnded(turnId: string | null, id: string, item: Fields): boolean {
    if (!this.#writer.runs(id)) {
      if (!this.#turns.isOver(turnId) || this.#commands.has(id)) {
        this.#commands.answered(id);
        return false;
      }
      this.#commands.found(id, item, this.#turns.taskOf(turnId));
    }
    this.#commands.ended(id, item);
    return true;
  }

  #begins(turnId: string | null, id: string, kind: Kind): void {
    if (this.#turns.open?.turnId !== turnId || this.#begun.has(id)) return;
    remember(this.#begun, id, kind, MAX_KNOWN);
    this.#revision += 1;
  }

  #voice(turnId: string | null): Speaker {
    return this.#writer.speaker(this.#turns.taskOf(turnId));
  }
}

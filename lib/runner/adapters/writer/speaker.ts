import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { compact } from '@interlude/protocol/fields';
import type { CallState, TextState } from '@interlude/protocol/lifecycle/grammar';
import { Entities } from '@interlude/protocol/lifecycle/grammar';
import type { Emit } from '../emit';
import { remember } from '../remember';
import {
  callArgs,
  callResult,
  ofTask,
  type ResultAbout,
  type TextAbout,
  textContent,
  textEnd,
  textStart,
} from './speech-events';

/** Most ended texts, and most calls, that are remembered for later corrections and results. */
const MAX_REMEMBERED = 512;
/** Most texts and thoughts that stay open at once; beyond it the oldest ends. */
const MAX_HELD = 64;
/** Of a longer text only the length is known while it is said, and after its end nothing it says can change it. */
const MAX_COMPARED = { open: 1024 * 1024, ended: 64 * 1024 };
/** Most calls that are distinguished under one id of the agent's. */
const MAX_ALIKE = 64;

export interface CallAbout {
  /** By default the text that is being said. */
  parentMessageId?: string;
  /** The agent says that a call begins: one that has its result, or whose turn is over, is another one. */
  isStart?: boolean;
  /** All arguments: a call that runs with others is another one. */
  args?: string | undefined;
}

interface Stretch {
  kind: 'text' | 'thought';
  /** What the agent calls it. */
  name: string;
  /** What it is called in the log: a message that was broken in on goes on under another id. */
  id: string;
  /** The written part; null once it is too long to keep. */
  shown: string | null;
  length: number;
  /** Others may come between. */
  staysOpen: boolean;
}

/**
 * One voice of a session, the agent's own or a subagent's. It says one thing at a time: a new text or call ends the text
 * before it, so agents that send no ends or no message ids are read correctly. Texts that `staysOpen` may interleave.
 *
 * Some agents use the id of a call again. Each call then has an id of its own in the log, and a result belongs to the
 * oldest call without one, of this turn if there is one.
 */
export class Speaker {
  readonly #emit: Emit;
  readonly prefix: () => string;
  readonly taskId: string | null;
  readonly #runId: string | null;
  readonly #texts = new Entities<'text', Stretch>('text', { mostOpen: MAX_HELD, mostEnded: MAX_REMEMBERED });
  /** Calls by their ids in the log, with their arguments so far; null: only the result has come. */
  readonly #calls = new Entities<'call', string | null>('call', {
    mostOpen: MAX_REMEMBERED,
    mostEnded: MAX_REMEMBERED,
  });
  /** Ids that the agent used more than once, with those in the log, oldest first. */
  readonly #alike = new Map<string, string[]>();
  /** The text or thought that goes on. */
  #open: Stretch | null = null;
  #named = 0;

  /**
   * @param prefix start of generated ids, where the agent names none: the open run
   * @param taskId the task whose subagent this is, and its run if the agent names one
   */
  constructor(emit: Emit, prefix: () => string, taskId: string | null = null, runId: string | null = null) {
    this.#emit = emit;
    this.prefix = prefix;
    this.taskId = taskId;
    this.#runId = runId;
  }

  /** Takes over what another process began: its final text replaces what was shown. */
  takeUp(said: { texts: readonly string[]; thoughts: readonly string[]; calls: readonly string[] }): void {
    const begun = (kind: Stretch['kind'], name: string) => {
      const stretch = { kind, name, id: name, shown: '', length: 0, staysOpen: false };
      this.#texts.take(keyOf(stretch), 'start', stretch);
      this.#texts.take(keyOf(stretch), 'cut');
    };
    for (const name of said.texts) begun('text', name);
    for (const name of said.thoughts) begun('thought', name);
    for (const id of said.calls) this.#calls.take(id, 'start', '');
  }

  /** Goes on with a text or thought. @param name the agent's id for it; null: it goes on until something else begins */
  say(kind: Stretch['kind'], name: string | null, delta: string, about: TextAbout = {}): void {
    if (delta === '') return;
    this.#tell(this.#stretch(kind, name, about), delta, about);
  }

  /** The whole of a text or thought so far, or at last: only what is new is said, and what differs is replaced. */
  sayWhole(kind: Stretch['kind'], name: string, whole: string, about: TextAbout = {}): void {
    if (whole === '') return;
    const key = keyOf({ kind, name });
    const ended = this.#texts.verdict(key, 'whole') === 'corrects' ? this.#texts.about(key) : undefined;
    if (ended !== undefined) {
      this.#correct(ended, whole, about);
      return;
    }
    const stretch = this.#stretch(kind, name, about);
    const goesOn = stretch.shown === null ? whole.length >= stretch.length : whole.startsWith(stretch.shown);
    if (goesOn) this.#tell(stretch, whole.slice(stretch.length), about);
    else this.#replace(stretch, whole);
  }

  /** The whole of a text that has ended: it replaces one that something else broke in on. */
  #correct(ended: Stretch, whole: string, about: TextAbout): void {
    const { shown } = ended;
    if (shown === whole) return;
    if (shown !== null && !ended.staysOpen) {
      this.#replace(ended, whole);
      this.#say(...textEnd(ended));
      keep(ended, whole, MAX_COMPARED.ended);
      return;
    }
    // The rest becomes a text of its own: late, but not lost.
    const length = shown === null || whole.startsWith(shown) ? ended.length : 0;
    if (whole.length <= length) return;
    const rest = this.#stretch(ended.kind, ended.name, about);
    Object.assign(rest, { shown: null, length });
    this.#tell(rest, whole.slice(length), about);
  }

  /**
   * Adds to a text or thought that has ended with its turn, by a snapshot, which stands where the message does.
   *
   * @returns false if the message is not known as a whole, or has not ended
   */
  sayLate(kind: Stretch['kind'], name: string, delta: string): boolean {
    const key = keyOf({ kind, name });
    const ended = this.#texts.about(key);
    if (ended === undefined || ended.shown === null || this.#texts.verdict(key, 'delta') !== 'late') return false;
    const content = ended.shown + delta;
    if (content.length > MAX_COMPARED.ended) return false;
    ended.length = content.length;
    ended.shown = content;
    const role = kind === 'text' ? 'assistant' : 'reasoning';
    this.#say({ type: 'MESSAGES_SNAPSHOT', messages: [{ id: ended.id, role, content }] });
    return true;
  }

  /** Ends what is open. @param name, kind end only this; by default everything */
  endText(name?: string, kind?: Stretch['kind']): void {
    for (const [, open] of this.#texts.entries()) {
      if ((name === undefined || open.name === name) && (kind === undefined || open.kind === kind)) this.#end(open);
    }
  }

  #end(stretch: Stretch): void {
    if (this.#open === stretch) this.#open = null;
    if (this.#texts.take(keyOf(stretch), 'end') !== 'ends') return;
    this.#say(...textEnd(stretch));
    keep(stretch, stretch.shown, MAX_COMPARED.ended);
  }

  /** Ends what was being said when something else begins. */
  #breakIn(): void {
    if (this.#open !== null && !this.#open.staysOpen) this.#end(this.#open);
  }

  /** Begins a call, unless it is known. @returns its id in the log */
  call(id: string, name: string, { parentMessageId, isStart = false, args }: CallAbout = {}): string {
    const known = this.#newest(id);
    // Its result came first.
    if (this.#calls.about(known) === null) this.#calls.forget(known);
    const verdict = this.#calls.verdict(known, 'start');
    const isAnother = (isStart && verdict === 'late') || (args !== undefined && this.#runsWithOther(known, args));
    if (verdict !== 'begins' && !isAnother) return known;
    // An id of its own as well where the calls of before are not known any more.
    const shown = isAnother || known !== id ? this.#another(id) : id;
    const parent = parentMessageId ?? (this.#open?.kind === 'text' ? this.#open.id : null);
    this.#breakIn();
    const crowded = this.#calls.crowded;
    if (crowded !== null) this.#leave(crowded);
    this.#calls.take(shown, 'start', '');
    this.#say({
      type: 'TOOL_CALL_START',
      toolCallId: shown,
      toolCallName: name,
      ...compact({ parentMessageId: parent }),
    });
    return shown;
  }

  #runsWithOther(id: string, args: string): boolean {
    const known = this.#calls.verdict(id, 'args') === 'late' ? this.argsOf(id) : '';
    return known !== '' && known !== args;
  }

  #another(id: string): string {
    const shown = `${id}~${this.#named++}`;
    const waiting = (this.#alike.get(id) ?? [id]).filter((one) => this.#calls.stateOf(one) !== 'answered');
    remember(this.#alike, id, [...waiting, shown].slice(-MAX_ALIKE), MAX_REMEMBERED);
    return shown;
  }

  #newest(id: string): string {
    return this.#alike.get(id)?.at(-1) ?? id;
  }

  /** The call that a result is about. */
  #waiting(id: string): string {
    const alike = this.#alike.get(id) ?? [id];
    const left = () => alike.findLast((one) => this.#calls.stateOf(one) === 'left');
    return alike.find((one) => this.#calls.isOpen(one)) ?? left() ?? this.#newest(id);
  }

  /** The shown part of a text; null if that is not known, or too long to keep. */
  shownOf(kind: Stretch['kind'], name: string): string | null {
    return this.#texts.about(keyOf({ kind, name }))?.shown ?? null;
  }

  textState(kind: Stretch['kind'], name: string): TextState {
    return this.#texts.stateOf(keyOf({ kind, name }));
  }

  /** The arguments of a call so far. */
  argsOf(id: string): string {
    return this.#calls.about(id) ?? '';
  }

  /** The id in the log of the newest call under an id of the agent's; null if there is none. */
  shownCall(id: string): string | null {
    const newest = this.#newest(id);
    return this.#calls.about(newest) == null ? null : newest;
  }

  /** @param id its id in the log */
  callState(id: string): CallState {
    return this.#calls.stateOf(id);
  }

  /** Calls of this turn without a result. */
  get openCalls(): string[] {
    return this.#calls.open;
  }

  /** The arguments of a call as they are by now; given again, they change only if they differ. */
  args(id: string, value: unknown): void {
    if (value === undefined || this.#calls.verdict(id, 'args') !== 'continues') return;
    const before = this.#calls.about(id) ?? '';
    const args = typeof value === 'string' ? value : JSON.stringify(value);
    if (args === before) return;
    const grows = before !== '' && args.startsWith(before);
    this.#say(...callArgs(id, grows ? args.slice(before.length) : args, !grows && before !== ''));
    this.#calls.take(id, 'args', args);
  }

  /** More of the arguments of a call, of an agent that gives them piece by piece. */
  addArgs(id: string, delta: string): void {
    if (this.#calls.verdict(id, 'args') !== 'continues') return;
    this.#say(...callArgs(id, delta, false));
    this.#calls.take(id, 'args', (this.#calls.about(id) ?? '') + delta);
  }

  /** The call runs: its arguments are complete. @param args final arguments: others mean another call */
  endCall(id: string, args = ''): void {
    const ends = this.#calls.verdict(id, 'end') === 'ends';
    if (ends || args !== '') this.#calls.take(id, 'end', args.length > MAX_COMPARED.ended ? '' : args);
    if (ends) this.#say({ type: 'TOOL_CALL_END', toolCallId: id });
  }

  /** What the call gave; the first word counts. */
  result(id: string, content: string, about: ResultAbout = {}): void {
    const shown = this.#waiting(id);
    this.endCall(shown);
    // The call began before this process listened, so its start may be in the log already.
    if (this.#calls.verdict(shown, 'result') === 'stray') this.#calls.take(shown, 'start', null);
    if (this.#calls.take(shown, 'result') === 'repeats') return;
    this.#say(callResult(shown, content, about));
  }

  /** Ends texts and the arguments of calls, because nothing that follows continues them. */
  endAll(): void {
    this.endText();
    for (const id of this.#calls.open) this.endCall(id);
  }

  /** The turn, task or process has ended. Results of calls that are left may still come. */
  close(): void {
    this.endText();
    for (const id of this.#calls.open) this.#leave(id);
    // A call under the same id is another one from here on, whatever its arguments.
    for (const id of this.#calls.ended) if (this.argsOf(id) !== '') this.#calls.take(id, 'cut', '');
  }

  /** The task of the subagent has ended: of its texts only the lengths are known from here on. */
  retire(): void {
    this.close();
    for (const stretch of this.#texts.all()) stretch.shown = null;
  }

  #leave(callId: string): void {
    this.endCall(callId);
    this.#calls.take(callId, 'cut', '');
  }

  #stretch(kind: Stretch['kind'], name: string | null, about: TextAbout): Stretch {
    const open = this.#open;
    if (open !== null && open.kind === kind && (name === null || open.name === name)) return open;
    this.#breakIn();
    const given = name ?? `${this.prefix()}/${this.#named++}`;
    const key = keyOf({ kind, name: given });
    const known = this.#texts.about(key);
    if (known !== undefined && this.#texts.isOpen(key)) {
      this.#open = known;
      return known;
    }
    const crowded = this.#texts.crowded;
    if (crowded !== null) this.#end(this.#texts.about(crowded) as Stretch);
    // The earlier text has ended: it goes on as another one.
    const id = known === undefined ? given : `${given}~${this.#named++}`;
    const stretch: Stretch = { kind, name: given, id, shown: '', length: 0, staysOpen: about.staysOpen === true };
    this.#texts.forget(key);
    this.#texts.take(key, 'start', stretch);
    this.#open = stretch;
    this.#say(...textStart(stretch, about));
    return stretch;
  }

  #tell(stretch: Stretch, text: string, { rawEvent }: TextAbout): void {
    this.#say(...textContent(stretch, text, false, rawEvent === undefined ? {} : { rawEvent }));
    stretch.length += text.length;
    keep(stretch, stretch.shown === null ? null : stretch.shown + text, MAX_COMPARED.open);
  }

  #replace(stretch: Stretch, text: string): void {
    this.#say(...textContent(stretch, text, true, {}));
    stretch.length = text.length;
    keep(stretch, text, MAX_COMPARED.open);
  }

  #say(...events: readonly AgUiEvent[]): void {
    for (const event of events) this.#emit(ofTask(event, this.taskId, this.#runId));
  }
}

function keyOf({ kind, name }: Pick<Stretch, 'kind' | 'name'>): string {
  return `${kind}:${name}`;
}

function keep(stretch: Stretch, text: string | null, most: number): void {
  stretch.shown = text === null || text.length > most ? null : text;
}

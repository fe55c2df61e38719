import { CUSTOM } from '@interlude/protocol/ag-ui';
import type { WakeRule } from '@interlude/protocol/commands';
import { cutText } from '@interlude/protocol/cut-text';
import { fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import { clientIdOfWake, MAX_WOKEN_FOR } from '../../adapters/codex/client-id';
import type { ToldEvent } from '../../adapters/wire';
import type { CommandOutcome } from '../../commands/seen-commands';
import type { SourceContext } from '../../host/source';
import { failed, noticeEvent } from '../../host/source-commands';

/** Most ended tasks that are remembered; those that run, or are due, are remembered besides. */
const MAX_ENDED = 20;
const MAX_PENDING = 200;
/**
 * How often the rule wakes an agent to which nobody writes: one that begins another command in each turn that it is woken
 * for would go on for ever.
 */
const MOST_IN_A_ROW = 25;
/** UTF-16 units. */
const MAX_OUTPUT = 4_000;
const MAX_DESCRIPTION = 500;
/** What ends within this time wakes the agent once. */
const TOGETHER_MS = 1_000;

/**
 * Waking the agent of one session with the results of its background tasks, of which Codex never tells it: by hand, or
 * by a rule.
 *
 * Ordering: an end is stored with the word that it has to wake the agent; that is taken back once Codex has the message.
 * Failure: a runner that was killed in between leaves it to the next one. Codex has the name of a wake, so that is
 * asked before it is sent again. An agent that only its own commands wake is not woken for ever: see MOST_IN_A_ROW.
 */
export class TaskWakes {
  readonly #context: SourceContext;
  readonly #sessionId: string;
  readonly #send: (wake: Wake) => Promise<CommandOutcome>;
  readonly #stopped = new Set<string>();
  readonly #outputs = new Map<string, string>();
  #ended: EndedTask[];
  #when: WakeRule;
  /** How often the rule has woken the agent since a person last said anything. */
  #inARow: number;
  #timer: NodeJS.Timeout | undefined;

  /** @param send hands it to Codex, unless Codex has it */
  static async recall(
    context: SourceContext,
    sessionId: string,
    send: (wake: Wake) => Promise<CommandOutcome>,
  ): Promise<TaskWakes> {
    const [rule, ended] = [ruleCursor(sessionId), endedCursor(sessionId)];
    const when = (await context.cursors(rule)).get(rule) === 'command-ended' ? 'command-ended' : 'never';
    const stored = (await context.cursors(ended)).get(ended);
    const row = rowCursor(sessionId);
    const inARow = Number((await context.cursors(row)).get(row) ?? 0);
    const known = stored === undefined ? [] : (JSON.parse(stored) as EndedTask[]);
    return new TaskWakes(context, sessionId, send, when, known, inARow);
  }

  private constructor(
    context: SourceContext,
    sessionId: string,
    send: (wake: Wake) => Promise<CommandOutcome>,
    when: WakeRule,
    ended: EndedTask[],
    inARow: number,
  ) {
    this.#context = context;
    this.#sessionId = sessionId;
    this.#send = send;
    this.#when = when;
    this.#ended = ended;
    this.#inARow = inARow;
    for (const { id, status } of ended) if (status === 'running') this.#outputs.set(id, '');
  }

  /** What the session's adapter has told. @param isTurnOpen behind it */
  told(events: readonly ToldEvent[], isTurnOpen: boolean): void {
    for (const { event } of events) {
      if (event.type === 'RUN_STARTED' && event.metadata?.interlude?.turn === 'user') this.#personSpoke();
      const value = fieldsOf(event.value);
      const id = textOf(value.task_id);
      if (id === null) continue;
      if (event.name === CUSTOM.taskStarted && value.task_type === 'local_bash') {
        this.#outputs.set(id, '');
        this.#remember({ id, description: textOf(value.description) ?? id, status: 'running' });
      }
      if (event.name === CUSTOM.taskOutput && this.#outputs.has(id)) {
        const before = value.from === 0 ? '' : (this.#outputs.get(id) ?? '');
        this.#outputs.set(id, (before + (textOf(value.text) ?? '')).slice(-MAX_OUTPUT));
      }
      if (event.name === CUSTOM.taskCompleted) this.#over(id, value, isTurnOpen);
    }
  }

  /** A person has ended it: that is no news for the agent. */
  stopped(taskId: string): void {
    this.#stopped.add(taskId);
  }

  async setRule(when: WakeRule): Promise<void> {
    this.#when = when;
    this.#personSpoke();
    if (when === 'never') this.#ended = this.#ended.map((one) => ({ ...one, isDue: false }));
    await this.#context.emit(this.#sessionId, [], [{ name: ruleCursor(this.#sessionId), value: when }, this.#cursor()]);
  }

  async wake(commandId: string, taskId: string): Promise<CommandOutcome> {
    const task = this.#ended.find(({ id }) => id === taskId);
    if (task === undefined) return failed('the runner does not know how this task ended');
    if (task.status === 'running') return failed('this task still runs');
    this.#personSpoke();
    return await this.#send(createWake(commandId, [task]));
  }

  /** Codex is there again: what was due goes to it. */
  goOn(): void {
    if (this.#ended.some(({ isDue }) => isDue)) this.#arm();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #over(id: string, { status, exit_code: code }: Record<string, unknown>, isTurnOpen: boolean): void {
    const task = this.#ended.find((one) => one.id === id);
    if (task === undefined || task.status !== 'running') return;
    const output = this.#outputs.get(id) ?? '';
    this.#outputs.delete(id);
    const byPerson = this.#stopped.delete(id) || status === 'stopped' || status === 'lost';
    const isWanted = this.#when === 'command-ended' && !byPerson && !isTurnOpen;
    const isDue = isWanted && this.#inARow < MOST_IN_A_ROW;
    if (isWanted && !isDue) this.#tellTooOften();
    this.#remember({ ...task, status: textOf(status) ?? 'completed', exitCode: numberOf(code), output, isDue });
    if (isDue) this.#arm();
  }

  #arm(): void {
    if (this.#timer !== undefined) return;
    const onError = (error: Error) => this.#context.log('warn', `the agent was not woken: ${error.message}`);
    this.#timer = setTimeout(() => void this.#fire().catch(onError), TOGETHER_MS);
    this.#timer.unref();
  }

  async #fire(): Promise<void> {
    this.#timer = undefined;
    const due = await this.#dueTogether();
    if (due.length === 0) return;
    const { state, reason } = await this.#send(createWake('rule', due));
    if (state === 'failed') {
      this.#context.log('warn', `the agent was not woken: ${reason}`);
      return;
    }
    const done = new Set(due.map(({ id }) => id));
    this.#ended = this.#ended.map((one) => (done.has(one.id) ? { ...one, isDue: false, isSent: false } : one));
    this.#inARow += 1;
    await this.#context.emit(this.#sessionId, [], [this.#cursor(), this.#rowCursor()]);
    this.goOn();
  }

  /** Stored before they are sent: told again by the next process, it has to be the same wake, whatever is due by then. */
  async #dueTogether(): Promise<EndedTask[]> {
    const due = this.#ended.filter(({ isDue }) => isDue);
    const sent = due.filter(({ isSent }) => isSent === true);
    if (due.length === 0 || sent.length > 0) return sent;
    const some = new Set(due.slice(0, MAX_WOKEN_FOR).map(({ id }) => id));
    this.#ended = this.#ended.map((one) => (some.has(one.id) ? { ...one, isSent: true } : one));
    await this.#context.emit(this.#sessionId, [], [this.#cursor()]);
    return this.#ended.filter(({ id }) => some.has(id));
  }

  #personSpoke(): void {
    if (this.#inARow === 0) return;
    this.#inARow = 0;
    void this.#context.emit(this.#sessionId, [], [this.#rowCursor()]);
  }

  #tellTooOften(): void {
    if (this.#inARow > MOST_IN_A_ROW) return;
    this.#inARow += 1;
    const text = `The rule has woken the agent ${MOST_IN_A_ROW} times, and nobody has written to it since. It is not woken by the rule again until somebody does.`;
    void this.#context.emit(this.#sessionId, [noticeEvent(text, 'warning')], [this.#rowCursor()]);
  }

  #remember(task: Pick<EndedTask, 'id' | 'description' | 'status'> & Partial<EndedTask>): void {
    const whole = { exitCode: null, output: '', isDue: false, ...task };
    const description = cutText(task.description, MAX_DESCRIPTION);
    const all = [...this.#ended.filter(({ id }) => id !== task.id), { ...whole, description }];
    const isPending = ({ status, isDue }: EndedTask) => status === 'running' || isDue;
    const kept = new Set([
      ...all.filter(isPending).slice(-MAX_PENDING),
      ...all.filter((one) => !isPending(one)).slice(-MAX_ENDED),
    ]);
    this.#ended = all.filter((one) => kept.has(one));
    for (const one of all) if (!kept.has(one)) this.#outputs.delete(one.id);
    void this.#context.emit(this.#sessionId, [], [this.#cursor()]);
  }

  #cursor() {
    return { name: endedCursor(this.#sessionId), value: JSON.stringify(this.#ended) };
  }

  #rowCursor() {
    return { name: rowCursor(this.#sessionId), value: this.#inARow === 0 ? null : `${this.#inARow}` };
  }
}

function ruleCursor(sessionId: string): string {
  return `codex-wake-rule:${sessionId}`;
}

function rowCursor(sessionId: string): string {
  return `codex-wakes-in-a-row:${sessionId}`;
}

function endedCursor(sessionId: string): string {
  return `codex-ended:${sessionId}`;
}

/** A background task that has ended, as far as waking its agent needs it. */
interface EndedTask {
  id: string;
  description: string;
  status: string;
  exitCode: number | null;
  /** The end of what it wrote. */
  output: string;
  /** The rule has to wake the agent for it, and has not yet. */
  isDue: boolean;
  /** It is part of the wake that was sent last, and nobody knows yet whether that arrived. */
  isSent?: boolean;
}

/** What is sent to Codex so that it begins a turn. */
export interface Wake {
  clientId: string;
  taskIds: string[];
  /** What Codex shows as the message that began the turn. */
  text: string;
  /** By whom, by name: what Interlude says, and what commands have written. */
  context: Record<
    string,
    { kind: 'application' | 'untrusted'; value: string /** `[a-z][a-z0-9_]{0,63}` */; name?: string }
  >;
}

/** @param name the same for the same wake, told again */
function createWake(name: string, tasks: readonly EndedTask[]): Wake {
  const taskIds = tasks.map(({ id }) => id);
  const said = tasks.map(({ description, status, exitCode }) => {
    const how = exitCode === null ? `has ended (${status})` : `has ended with exit code ${exitCode}`;
    return `The background command \`${description}\` ${how}.`;
  });
  const outputs = tasks.flatMap(({ output }, at) => {
    const name = `background_command_output${tasks.length === 1 ? '' : `_${at + 1}`}`;
    const context = { kind: 'untrusted' as const, value: output, name };
    return output === '' ? [] : [[name, context] as const];
  });
  return {
    clientId: clientIdOfWake(name, taskIds),
    taskIds,
    text: said.join('\n'),
    context: {
      interlude: {
        kind: 'application',
        value: `Interlude began this turn, as people asked it to.\n${said.join('\n')}`,
      },
      ...Object.fromEntries(outputs),
    },
  };
}

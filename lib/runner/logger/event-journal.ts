import type { AgUiEvent, TimedEvent, TurnTrigger } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import type { LogLevel } from '@interlude/protocol/vocabulary';

import { setBounded } from '../adapters/wire';
import type { Logger } from './logger';

/**
 * Logs an agent's events with their own times, and at debug level that they were emitted.
 *
 * Ordering: writes before the events are stored, in the same tick, so that both reach the outbox's file or neither.
 */
export class EventJournal {
  readonly #logger: Logger;
  readonly #source: Logger;
  /** Suffix of each line. */
  readonly #of: string;
  readonly #lines = new EventLines();

  /**
   * @param source the component that emits events
   * @param sessionId added to each line of a log for several sessions
   */
  constructor(logger: Logger, source: string, sessionId: string | null = null) {
    this.#logger = logger;
    this.#of = sessionId === null ? '' : ` [session ${sessionId}]`;
    this.#source = logger.child(source);
  }

  write(events: readonly TimedEvent[]): void {
    const [first] = events;
    if (first === undefined) return;
    this.#source.log('debug', `emitted ${formatCounts(events)}${this.#of}`, { at: first.occurredAt });
    for (const { at, level, component, message } of this.#lines.read(events)) {
      this.#logger.child(component).log(level, message + this.#of, { at });
    }
  }

  /** Reads events that an earlier process has logged, for their names and times. */
  remember(events: readonly TimedEvent[]): void {
    this.#lines.read(events);
  }
}

interface EventLine {
  /** Epoch milliseconds. */
  at: number;
  level: LogLevel;
  component: 'session' | 'turns' | 'tasks' | 'requests' | 'tools';
  message: string;
}

type LineContent = Omit<EventLine, 'at'>;
type Value = Record<string, unknown>;

/**
 * Translates an agent's events into log lines: the start and end of each turn, task and request, and at debug level
 * each tool call. Messages appear in the transcript only.
 *
 * Ordering: events must arrive in order, because durations and names come from the start events.
 */
export class EventLines {
  #turnStartedAt: number | null = null;
  /** By task and run, oldest first. Ended tasks stay until the turn that reports them ends. */
  readonly #tasks = new Map<string, { id: string; name: string; startedAt: number; hasEnded: boolean }>();
  readonly #requests = new Map<string, string>();

  read(events: readonly TimedEvent[]): EventLine[] {
    return events.flatMap((each) => {
      const content = this.#lineFor(each);
      return content === null ? [] : [{ at: each.occurredAt, ...content }];
    });
  }

  #lineFor({ occurredAt, event }: TimedEvent): LineContent | null {
    switch (event.type) {
      case 'RUN_STARTED':
        this.#turnStartedAt = occurredAt;
        return turns('info', `turn started: ${this.#cause(event)}`);
      case 'RUN_FINISHED': {
        const isCancelled = (event.outcome as Value | undefined)?.type === 'cancelled';
        return turns('info', `turn ${isCancelled ? 'interrupted' : 'ended'}${this.#turnEnd(event, occurredAt)}`);
      }
      case 'RUN_ERROR':
        return turns(
          'error',
          `turn failed${this.#turnEnd(event, occurredAt)}: ${text(event.message) ?? 'no reason given'}`,
        );
      case 'TOOL_CALL_START':
        return { level: 'debug', component: 'tools', message: `calling ${text(event.toolCallName) ?? 'a tool'}` };
      case 'CUSTOM':
        return this.#custom(text(event.name) ?? '', (event.value ?? {}) as Value, occurredAt);
      default:
        return null;
    }
  }

  #custom(name: string, value: Value, at: number): LineContent | null {
    switch (name) {
      case CUSTOM.taskStarted:
        return this.#taskStarted(value, at);
      case CUSTOM.taskCompleted:
        return this.#taskEnded(value, at);
      case CUSTOM.requestOpened: {
        const about = `${text(value.kind) ?? 'permission'} “${text(value.title) ?? text(value.tool_name) ?? 'a tool'}”`;
        setBounded(this.#requests, String(value.request_id), about, MAX_REMEMBERED);
        return requests(`asking for an answer: ${about}`);
      }
      case CUSTOM.requestResolved: {
        const about = this.#requests.get(String(value.request_id)) ?? `request ${String(value.request_id)}`;
        this.#requests.delete(String(value.request_id));
        const outcome = text(value.outcome);
        return requests(`${about}: ${outcome === null || outcome === 'unknown' ? 'the agent continued' : outcome}`);
      }
      case CUSTOM.sessionStarted:
        return session('info', 'the agent’s process is running');
      case CUSTOM.sessionEnded: {
        const exit = value.exitCode === undefined ? '' : `, exit ${String(value.exitCode)}`;
        const isFailed = typeof value.exitCode === 'number' && value.exitCode !== 0;
        return session(isFailed ? 'error' : 'info', `session ended: ${text(value.reason) ?? 'no reason given'}${exit}`);
      }
      case CUSTOM.notice:
        return session(value.tone === 'error' ? 'error' : value.tone === 'warning' ? 'warn' : 'info', `${value.text}`);
      default:
        return null;
    }
  }

  #taskStarted(value: Value, startedAt: number): LineContent {
    const type = text(value.task_type);
    const id = String(value.task_id);
    const name = `task ${id} “${text(value.description) ?? 'without a name'}”`;
    setBounded(this.#tasks, runKey(value), { id, name, startedAt, hasEnded: false }, MAX_REMEMBERED);
    return tasks('info', `${name} started${type === null ? '' : ` (${type})`}`);
  }

  #taskEnded(value: Value, at: number): LineContent {
    const known = this.#tasks.get(runKey(value)) ?? this.#newest(String(value.task_id));
    const isOpen = known !== undefined && !known.hasEnded;
    const status = text(value.status) ?? 'completed';
    const exit = typeof value.exit_code === 'number' ? `, exit ${value.exit_code}` : '';
    const took = isOpen ? ` after ${seconds(at - known.startedAt)}` : '';
    if (isOpen) known.hasEnded = true;
    const isBad = status === 'failed' || status === 'lost';
    return tasks(isBad ? 'warn' : 'info', `${known?.name ?? `task ${String(value.task_id)}`} ${status}${exit}${took}`);
  }

  #turnEnd(event: AgUiEvent, at: number): string {
    const took = this.#turnStartedAt === null ? '' : ` after ${seconds(at - this.#turnStartedAt)}`;
    this.#turnStartedAt = null;
    const { trigger, foldedTaskIds: folded = [] } = event.metadata?.interlude ?? {};
    const end = folded.length === 0 ? took : `${took}; notified about the end of ${this.#named(folded)}`;
    const reported = new Set([...folded, ...(trigger?.taskIds ?? [])]);
    for (const [key, { id, hasEnded }] of this.#tasks) if (hasEnded && reported.has(id)) this.#tasks.delete(key);
    return end;
  }

  #cause({ metadata }: AgUiEvent): string {
    const { turn, trigger, userMessageIds = [] } = metadata?.interlude ?? {};
    if (turn !== 'between-run') {
      return userMessageIds.length > 1 ? `answering ${userMessageIds.length} messages` : 'answering a message';
    }
    return `woken by ${this.#wokenBy(trigger)}`;
  }

  #wokenBy(trigger: TurnTrigger | undefined): string {
    if (trigger?.kind === 'task' && trigger.taskIds.length > 0) return `the end of ${this.#named(trigger.taskIds)}`;
    if (trigger?.kind === 'timer') return trigger.reason === undefined ? 'a timer' : `a timer: ${trigger.reason}`;
    if (trigger?.kind === 'goal') return 'its goal';
    if (trigger?.kind === 'agent') return 'another agent';
    return 'itself';
  }

  #named(taskIds: readonly string[]): string {
    return taskIds.map((id) => this.#newest(id)?.name ?? `task ${id}`).join(', ');
  }

  #newest(id: string) {
    return [...this.#tasks.values()].findLast((task) => task.id === id);
  }
}

/** An agent that never ends its tasks must not fill the memory. */
const MAX_REMEMBERED = 512;

function runKey(value: Value): string {
  return JSON.stringify([value.task_id, text(value.run_id)]);
}

/** `2 TEXT_MESSAGE_CONTENT, RUN_FINISHED` */
function formatCounts(events: readonly TimedEvent[]): string {
  const counts = new Map<string, number>();
  for (const { event } of events) counts.set(event.type, (counts.get(event.type) ?? 0) + 1);
  return [...counts].map(([name, count]) => (count === 1 ? name : `${count} ${name}`)).join(', ');
}

const line =
  (component: EventLine['component']) =>
  (level: LogLevel, message: string): LineContent => ({ level, component, message });
const turns = line('turns');
const tasks = line('tasks');
const session = line('session');
const requests = (message: string): LineContent => ({ level: 'info', component: 'requests', message });

function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1_000).toFixed(1)} s`;
}

function text(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

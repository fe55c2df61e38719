import type { Command } from '@interlude/protocol/commands';
import type { Logger } from '../logger/logger';
import type { MessageDelivery } from './message-delivery';
import type { CommandOutcome } from './seen-commands';
import { type CommandOf, HANDLER_NAMES, type Source } from './source';
import { failed } from './source-commands';

export interface CommandDispatchOptions {
  source: () => Source | null;
  /** The outcome of every command from now on, because the runner is ending; null while it runs. */
  ending: (command: Command) => CommandOutcome | null;
  setLogLevel: (body: CommandOf<'log-level.set'>['body']) => Promise<CommandOutcome> | undefined;
  delivery: MessageDelivery;
  /** A message may change what is pending. */
  onMessage: () => void;
  log: Logger;
}

const STARTING = failed('the runner is still starting');

/**
 * Routes commands to the handlers of the source.
 *
 * Failure: a command whose first attempt was interrupted by a restart is not repeated, except messages: their handler
 * finds out whether the agent already has them.
 */
export class CommandDispatch {
  readonly #options: CommandDispatchOptions;

  constructor(options: CommandDispatchOptions) {
    this.#options = options;
  }

  async run(command: Command, again: boolean): Promise<CommandOutcome> {
    const { ending, setLogLevel, log, onMessage } = this.#options;
    const { id, type, sessionId } = command;
    const source = this.#options.source();
    if (type === 'log-level.set') return (await setLogLevel(command.body)) ?? STARTING;
    if (source === null) return STARTING;
    const ended = ending(command);
    if (ended !== null) return ended;
    const isKnown = source.sessions.some((session) => session.sessionId === sessionId);
    if (source.elsewhere !== undefined && sessionId !== null && !isKnown) return failed(source.elsewhere);
    const handler = source[HANDLER_NAMES[type]]?.bind(source) as
      | ((command: CommandOf<typeof type>, again: boolean) => Promise<CommandOutcome>)
      | undefined;
    if (handler === undefined) return failed(source.refusals?.[type] ?? `this agent does not support "${type}"`);
    if (again && type !== 'message') {
      return failed('the runner stopped while working on this; check whether it took effect');
    }
    log.info(`${type} ${id}${again ? ', again' : ''}`);
    if (type === 'message') onMessage();
    const outcome = await (command.type === 'message'
      ? this.#deliver(command, source, again)
      : handler(command, again));
    if (outcome.state === 'failed') log.warn(`${type} ${id} failed: ${outcome.reason}`);
    if (type === 'message') onMessage();
    return outcome;
  }

  #deliver(command: CommandOf<'message'>, source: Source, again: boolean): Promise<CommandOutcome> {
    const facts = () => source.sessions.find((session) => session.sessionId === command.sessionId);
    return this.#options.delivery.pass(
      command,
      facts,
      (files) => source.say?.(command, again, files) ?? Promise.resolve(STARTING),
    );
  }
}

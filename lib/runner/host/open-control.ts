import type { Logger } from '../logger/logger';
import { ControlPort, logHookFailure } from './control-port';
import type { Source } from './source';
import type { ToolCallers } from './tool-callers';

export interface ControlOptions {
  /** Where hooks find it. */
  file: string;
  source: Pick<Source, 'control' | 'sessions'>;
  logger: Logger;
  obligations: () => readonly object[];
  callers: ToolCallers;
}

/**
 * The control port of one runner. A source that its agents' hooks call needs it; for others a failure is only logged.
 *
 * @throws Error when it can't be opened, and the source needs it
 */
export async function openControl(options: ControlOptions): Promise<ControlPort | null> {
  const { file, source, logger, obligations, callers } = options;
  const log = logger.child('control-port');
  const opening = ControlPort.open({
    file,
    handlers: {
      hookFatal: (failure) => logHookFailure(logger, failure, source.sessions[0]?.sessionId ?? null),
      ...source.control,
      obligations,
      toolOwner: (caller) => callers.ownerOf(caller),
      sessionOf: (ticket) => callers.sessionOf(ticket),
      logLevel: logger.level,
    },
    onError: (message) => log.warn(message),
  });
  const opened = await opening.catch((error) => {
    if (source.control !== undefined) throw error;
    logger.child('host').warn(`there is no control port: ${error instanceof Error ? error.message : error}`);
    return null;
  });
  logger.redactor.learn(opened?.secret);
  return opened;
}

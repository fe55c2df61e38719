import type { Logger } from '../logger/logger';
import { ControlPort, logHookFailure } from './control-port';
import type { Source } from './source';
import type { ToolCallers } from './tool-callers';

export interface ControlOptions {
  /** Path of the control file. */
  file: string;
  source: Pick<Source, 'control' | 'sessions'>;
  logger: Logger;
  obligations: () => readonly object[];
  callers: ToolCallers;
}

/**
 * Opens the control port. Required by sources with hooks; for others a failure is only logged.
 * @throws Error if a required port can't be opened
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
    logger.child('host').warn(`no control port: ${error instanceof Error ? error.message : error}`);
    return null;
  });
  logger.redactor.learn(opened?.secret);
  return opened;
}

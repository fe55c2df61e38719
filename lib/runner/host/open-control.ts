import { ControlPort } from '@/lib/runner/control-port/control-port';
import { logHookFailure } from '@/lib/runner/control-port/hook-failure';
import type { Logger } from '@/lib/runner/logger/logger';
import type { SessionTools } from '@/lib/runner/mcp/agent-tools';
import type { Source } from './source';

export interface ControlOptions {
  /** Where hooks find it. */
  file: string;
  source: Pick<Source, 'control' | 'sessions'>;
  logger: Logger;
  obligations: () => readonly object[];
  toolsOf: (sessionId: string) => SessionTools;
}

/**
 * The control port of one runner. A source that its agents' hooks call needs it; for others a failure is only logged.
 *
 * @throws Error when it can't be opened, and the source needs it
 */
export async function openControl(options: ControlOptions): Promise<ControlPort | null> {
  const { file, source, logger, obligations, toolsOf } = options;
  const log = logger.child('control-port');
  const opening = ControlPort.open({
    file,
    handlers: {
      hookFatal: (failure) => logHookFailure(logger, failure, source.sessions[0]?.sessionId ?? null),
      ...source.control,
      obligations,
      tools: (pids) => toolsAmong(pids, source, toolsOf),
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

/** Whose agent is one of these processes. Of two that it has carried one after the other, the later one. */
function toolsAmong(
  pids: readonly number[],
  { sessions }: Pick<Source, 'sessions'>,
  toolsOf: ControlOptions['toolsOf'],
): SessionTools | null {
  for (const pid of pids) {
    const session = sessions.findLast(({ process }) => process?.pid === pid);
    if (session !== undefined) return toolsOf(session.sessionId);
  }
  return null;
}

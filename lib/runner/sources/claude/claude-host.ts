import { randomUUID } from 'node:crypto';
import { controlPath } from '@/lib/runner/control-port/control-file';
import { RunnerHost, type RunnerHostOptions } from '@/lib/runner/host/runner-host';
import type { SourceSurroundings } from '@/lib/runner/host/source';
import { ClaudeSource, type ClaudeSourceOptions } from './claude-source';

type OfSource = Pick<ClaudeSourceOptions, 'memory' | 'inHand' | 'env' | 'model' | 'permissionMode' | 'answerWithinMs'>;
type OfHost = Omit<RunnerHostOptions, 'sessionId' | 'runnerId' | 'startedAt' | 'openSource'>;

export interface ClaudeHostOptions extends OfSource, OfHost {
  /** The Agent SDK, or what speaks as it does. */
  installed: Pick<ClaudeSourceOptions, 'sdk' | 'owns' | 'isInProcess'>;
  onOpen?: (surroundings: SourceSurroundings) => void;
}

/** The runner of one session of Claude Code: the host, with its source in it. */
export function claudeHost(options: ClaudeHostOptions): RunnerHost {
  const { installed, memory, inHand, env, model, permissionMode, answerWithinMs, onOpen, ...host } = options;
  return new RunnerHost({
    ...host,
    sessionId: memory.sessionId,
    runnerId: randomUUID(),
    startedAt: Date.now(),
    openSource: (surroundings) => {
      onOpen?.(surroundings);
      return new ClaudeSource({
        ...installed,
        surroundings,
        memory,
        inHand,
        env,
        controlFile: controlPath(host.dataDir, host.agentId),
        model,
        permissionMode,
        answerWithinMs,
      });
    },
  });
}

import { clientIdOfWake } from '../../adapters/codex/turns';

/** A background task that has ended, as far as waking its agent needs it. */
export interface EndedTask {
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
export function wakeFor(name: string, tasks: readonly EndedTask[]): Wake {
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

import type { CommandPlace } from '@/lib/server/access/command-place';

export interface Way {
  what: string;
  why: string;
  /** Where it was found on this machine. */
  at?: string;
  command: string;
}

/**
 * How a session comes here, each with the command that makes it: pasted as it is, in Interlude's folder, it works. What
 * is on this machine comes first.
 */
export function waysToBegin(origin: string, { setting, token, found }: CommandPlace): Way[] {
  const ours = (command: string) => `${setting ?? `INTERLUDE_URL=${origin} `}npm run -s interlude -- ${command}`;
  const isFound = (kind: string) => found.some((one) => one.kind === kind);
  return [
    ...found.map(({ title, why, commands, at }) => ({
      what: `Connect ${title}`,
      why,
      at,
      command: `${commands.some((one) => one.includes('~/my-project')) ? 'mkdir -p ~/my-project &&\n' : ''}${commands.map(ours).join(' &&\n')}`,
    })),
    ...(isFound('claude')
      ? []
      : [
          {
            what: 'Run Claude Code',
            why: 'What you write here reaches the agent; what it does, in a turn and between turns, appears here. Name a project of yours, or begin with an empty one.',
            command: `mkdir -p ~/my-project &&\n${ours('runner claude --cwd ~/my-project')}`,
          },
        ]),
    ...(isFound('hooks')
      ? []
      : [
          {
            what: 'Follow your terminals',
            why: 'Hooks let Claude Code, run as you always run it, appear here too.',
            command: `${ours('hooks install')} &&\n${ours('runner hooks')}`,
          },
        ]),
    {
      what: 'Watch a demo fleet',
      why: 'Agents replay real work: background tasks end, and agents wake up by themselves. One of them answers you.',
      command: ours('demo'),
    },
    {
      what: 'Replay a recording',
      why: 'One recorded session of Claude Code, through the same path a live agent takes. Recordings of other agents work too.',
      command: ours('replay lib/runner/cli/demo/recordings/test-run.jsonl'),
    },
    {
      what: 'Connect any other agent',
      why: 'Codex, OpenCode, agents that speak ACP, AG-UI or AgentAPI have a runner: see “runner --help”. Anything else that speaks HTTP can post its events. This posts a first turn.',
      command: curl(origin, token ?? '$INTERLUDE_TOKEN'),
    },
  ];
}

/** Each time it is pasted it is an outbox that was begun anew, so that none of its records is a double. */
function curl(origin: string, token: string): string {
  const run = `"threadId":"s1","runId":"'$now'"`;
  const events = [
    `{"type":"RUN_STARTED",${run}}`,
    `{"type":"TEXT_MESSAGE_CHUNK","role":"assistant",\n      "messageId":"'$now'","delta":"Hello."}`,
    `{"type":"RUN_FINISHED",${run}}`,
  ];
  const records = events.map(
    (event, at) =>
      `    {"seq":${at + 1},"kind":"event","occurredAt":'$now',\n     "agentId":"my-agent","sessionId":"s1","event":\n     ${event}}`,
  );
  return [
    'now=$(date +%s)000',
    // by a pipe: what stands in a command's arguments everybody on the machine may read
    `printf 'authorization: Bearer %s' "${token}" |`,
    `curl -s ${origin}/api/v1/events -H @- -d '{`,
    `  "producer":{"id":"my-agent","epoch":'$now'},`,
    `  "records":[\n${records.join(',\n')}]}'`,
  ].join('\n');
}

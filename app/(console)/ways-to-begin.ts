import type { CommandPlace } from '@/lib/access/command-place';

export interface Way {
  what: string;
  why: string;
  command: string;
}

/** How a session comes here, each with the command that makes it: pasted as it is, in Interlude's folder, it works. */
export function waysToBegin(origin: string, { setting, token }: CommandPlace): Way[] {
  const ours = (command: string) => `${setting ?? `INTERLUDE_URL=${origin} `}npm run -s interlude -- ${command}`;
  return [
    {
      what: 'Run Claude Code',
      why: 'What you write here reaches the agent; what it does, in a turn and between turns, appears here. Name a project of yours, or begin with an empty one.',
      command: `mkdir -p ~/my-project &&\n${ours('runner claude --cwd ~/my-project')}`,
    },
    {
      what: 'Follow your terminals',
      why: 'Hooks let Claude Code, run as you always run it, appear here too.',
      command: `${ours('hooks install')} &&\n${ours('runner hooks')}`,
    },
    {
      what: 'Watch a demo fleet',
      why: 'Agents replay real work: background tasks end, and agents wake up by themselves. One of them answers you.',
      command: ours('demo'),
    },
    {
      what: 'Replay a recording',
      why: 'One recorded session of Claude Code, through the same path a live agent takes.',
      command: ours('replay tests/fixtures/recordings/demo/test-run.jsonl'),
    },
    {
      what: 'Connect any other agent',
      why: 'Anything that speaks HTTP can post its events; the README has the contract. This posts a first turn.',
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
    `curl -s ${origin}/api/v1/events \\`,
    `  -H "authorization: Bearer ${token}" -d '{`,
    `  "producer":{"id":"my-agent","epoch":'$now'},`,
    `  "records":[\n${records.join(',\n')}]}'`,
  ].join('\n');
}

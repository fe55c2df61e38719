/** A part of the API, and what each of its routes does, in the order in which they are read. */
interface Group {
  name: string;
  about: string;
  routes: Record<string, string>;
}

/** Routes as the table has them, without the base path where that is `/api/v1`. */
export const GROUPS: readonly Group[] = [
  {
    name: 'Sessions',
    about: 'What agents do, and how they stand.',
    routes: {
      'GET /sessions': 'List sessions: those under way and the newest others, or all that match, page by page',
      'GET /sessions/:sessionId': 'One session',
      'GET /sessions/:sessionId/transcript': 'Whole turns of a session, the newest page or the one before a turn',
      'GET /sessions/:sessionId/turn-at': 'What ran at a time',
      'GET /sessions/:sessionId/tasks': 'The background tasks of a session',
      'GET /sessions/:sessionId/tasks/:taskId': 'One task, with what its subagent said',
      'GET /sessions/:sessionId/tasks/:taskId/output': 'What a run of a task has written',
      'GET /sessions/:sessionId/requests/:requestId': 'What an agent asks, as its turn shows it',
      'GET /sessions/:sessionId/obligations': 'What is owed in a session, and what was settled last',
      'GET /sessions/:sessionId/delivery': 'Whether everything that was told of a session is there, and what is not',
      'GET /attachments/:hash': 'The bytes of what a message carries',
      'GET /activity': 'What the fleet did lately: events by the minute, how long tasks and replies took',
    },
  },
  {
    name: 'Live',
    about: 'One connection tells of everything as it happens. It resumes after `Last-Event-ID`, or `after`.',
    routes: { 'GET /stream': 'What happens, as server-sent events' },
  },
  {
    name: 'Acting',
    about: 'What people ask of an agent, and decide. 202 says that it is queued for its runner.',
    routes: {
      'POST /sessions/:sessionId/messages': 'Send a message; the same clientId sends it once',
      'POST /sessions/:sessionId/attachments': 'Upload what a message will carry: the body is the bytes',
      'POST /sessions/:sessionId/interrupt': 'End the turn that is open',
      'POST /sessions/:sessionId/end': 'End the session for good',
      'POST /sessions/:sessionId/tasks/:taskId/stop': 'Stop a task',
      'POST /sessions/:sessionId/tasks/:taskId/wake': 'Begin a turn with the result of a task that has ended',
      'PUT /sessions/:sessionId/wake-rule': 'When the runner begins such turns by itself',
      'POST /sessions/:sessionId/requests/:requestId': 'Decide a permission, or answer a question',
      'PUT /sessions/:sessionId/arrangement': 'Name, pin or archive a session; its agent is not told',
      'POST /sessions/:sessionId/obligations/:messageId/waive': 'Nobody waits for this reply any more',
      'POST /sessions/:sessionId/obligations/:messageId/accept': 'Take a text for the reply',
    },
  },
  {
    name: 'Inbox',
    about: 'What needs a person, over the whole fleet, and the webhook that tells of it.',
    routes: {
      'GET /inbox': 'What needs a person, page by page',
      'POST /inbox/marks': 'Mark items as seen, snoozed or claimed',
      'GET /webhook': 'The webhook that is set, and how its deliveries go',
      'GET /webhook/deliveries': 'Its deliveries, the newest first',
      'POST /webhook/test': 'Call it now, with nothing to tell',
    },
  },
  {
    name: 'Agents',
    about: 'The agents behind the sessions, their outboxes and their logs.',
    routes: {
      'GET /agents': 'List agents, page by page',
      'GET /agents/:agentId': 'One agent, with its outboxes, newest sessions, failures and quarantine',
      'GET /agents/:agentId/parked': 'Records about tasks that wait for somebody to say whose they are',
      'POST /agents/:agentId/parked/:position/assign': 'Say which session they belong to',
      'POST /agents/:agentId/parked/:position/discard': 'Or that they belong to none',
      'POST /agents/:agentId/insights/seen': 'Count failures up to a position as seen',
      'PUT /agents/:agentId/retirement': 'Put an agent away that is not coming back, or take it back',
      'GET /agents/:agentId/log-level': 'The level its runner writes, and the one that is asked for',
      'PUT /agents/:agentId/log-level': 'Ask for another level, for a while or for good',
      'GET /agents/:agentId/logs': 'A page of its log',
      'GET /agents/:agentId/logs/components': 'Which components write to it',
      'GET /agents/:agentId/logs/download': 'Every line that passes the filters, as text',
    },
  },
  {
    name: 'Runners',
    about:
      'What runs beside an agent sends what it did, and takes what is asked of it. See PROTOCOL.md and docs/runners.md.',
    routes: {
      'POST /events': 'Send records: each is stored once and in order, whatever is sent again',
      'GET /agents/:agentId/commands': 'What is asked of an agent, as server-sent events',
      'POST /agents/:agentId/commands/:commandId/ack': 'Say what became of a command',
      'GET /agents/:agentId/reply-obligations': 'What an agent owes, the oldest first',
    },
  },
  {
    name: 'AG-UI',
    about: 'Any AG-UI client can speak with an agent here. See docs/agui.md.',
    routes: {
      'POST /agui/:agentId': 'Run: send the new messages, and stream what comes of them',
      'POST /agui/:agentId/connect': 'Stream what a session has told, and then what it tells',
    },
  },
  {
    name: 'Access',
    about: 'Who may come in, and what they did. See docs/sign-in.md.',
    routes: {
      'GET /me': 'Who the sender is, its role, scope and end',
      'GET /me/sign-ins': 'Where the sender is signed in',
      'DELETE /me/sign-ins': 'Sign out everywhere else',
      'GET /credentials': 'Tokens, sign-ins and embeds',
      'POST /tokens': 'Make a token; its secret is told this once',
      'DELETE /credentials/:credentialId': 'Revoke a credential',
      'POST /sign-in-codes': 'Make a link that signs an admin in once',
      'POST /embed-tokens': 'Make a token that shows a session, a log or the fleet in a page of somebody else’s',
      'GET /members': 'Who has signed in with the identity provider',
      'PUT /members/:memberId': 'Change a member’s role, or shut them out',
      'GET /audit': 'Who did what, the newest first',
      'GET /audit/export': 'Every entry that matches, as lines of JSON',
      'GET /audit/check': 'Whether any entry was changed or taken out',
      'GET /sign-in': 'Sign in with a link',
      'POST /sign-in': 'Sign in with a token that is pasted',
      'GET /sign-in/provider': 'Go to the identity provider',
      'GET /sign-in/callback': 'Come back from it',
      'POST /sign-in/back-channel-logout': 'The identity provider says that somebody is signed out',
      'POST /sign-out': 'Sign out',
    },
  },
  {
    name: 'Operation',
    about: 'Is it alive, how is it doing, and what does it understand. See docs/operating.md.',
    routes: {
      'GET /healthz': 'This process answers',
      'HEAD /healthz': 'This process answers',
      'GET /readyz': 'The database can be written to',
      'HEAD /readyz': 'The database can be written to',
      'GET /storage': 'What the database takes, by its parts and tables',
      'GET /cron': 'Do everything that is due, for hosts whose processes do not last',
      'GET /metrics': 'How the server and the fleet do, in Prometheus’ text format',
      'GET /openapi.json': 'This description',
    },
  },
];

/** A route’s group and what it does; undefined for one that nobody has described. */
export function wordsOf(method: string, path: string): { group: string; summary: string } | undefined {
  for (const { name, routes } of GROUPS) {
    const summary = routes[`${method} ${path}`];
    if (summary !== undefined) return { group: name, summary };
  }
  return undefined;
}

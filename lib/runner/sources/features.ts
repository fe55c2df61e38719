/**
 * What a kind of agent can do with Interlude, in the order of the table in docs/kinds. A test holds the table, the verbs
 * of each source and what the pages say equal to this.
 */
export const FEATURES = {
  turns: 'turns with their texts, thoughts and tool calls',
  betweenRun: 'turns that the agent begins by itself',
  cause: 'what woke it',
  tasks: 'background tasks, as they begin',
  taskEnds: 'how a background task ended',
  taskOutput: 'what a background task writes',
  subagents: 'what subagents say and do',
  permissions: 'permissions, answered in the dashboard',
  questions: 'questions, answered in the dashboard',
  messages: 'messages from the dashboard',
  attachments: 'images and files from the composer',
  interrupt: 'interrupting a turn',
  end: 'ending the session',
  stop: 'stopping a task',
  wake: 'waking it with the result of a task',
  plans: 'plans',
  edits: 'changes of files, as diffs',
  catchUp: 'what happened while its runner was away',
  shared: 'beside the operator’s own terminal',
} as const;

export type Feature = keyof typeof FEATURES;

/**
 * True, or why not, in a sentence that an operator reads. `partly` works, with that reservation; `needless` is what the
 * agent does by itself.
 */
export type Support = true | { partly: string } | { no: string } | { needless: string };

export type KindFeatures = Record<Feature, Support>;

/** What is said on an agent's page: everything that its kind can't tell, or only in part. */
export function limitsOf(features: KindFeatures): string[] {
  return Object.values(features).flatMap((support) =>
    support === true || 'needless' in support ? [] : Object.values(support),
  );
}

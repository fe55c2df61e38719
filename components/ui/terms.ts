/** Explanations of words that a newcomer can't know. lib/protocol/GLOSSARY.md defines all terms of the project. */
export const TERMS = {
  runner: {
    title: 'Runner',
    text: 'The program beside an agent. It reports what the agent does, and passes on your messages and answers.',
  },
  'between-run turn': {
    title: 'Between-run turn',
    text: 'A turn that the agent started by itself, without a message from you. “Woken by” names the cause: a task that ended, a timer or another agent.',
  },
  evidence: {
    title: 'Evidence',
    text: 'What a state is based on. Interlude compares the newest reports of agent, runner and process, and the most reliable one decides: an ended process outweighs the agent’s own report. “why?” lists them, each with its age.',
  },
  'pending reply': {
    title: 'Pending reply',
    text: 'A message that the agent has not answered yet. It is settled by an answer, or when you mark that it needs none.',
  },
  outbox: {
    title: 'Outbox',
    text: 'The queue of records on the runner’s disk. Records wait there, unsent, until the server has stored them, so an outage loses nothing.',
  },
  'missing records': {
    title: 'Missing records',
    text: 'Records that a runner had to drop or that the server rejected. Records are numbered, so Interlude knows where one is missing and marks the place.',
  },
  'rejected records': {
    title: 'Rejected records',
    text: 'Records that the server couldn’t store as they were sent. They are listed here with the reason.',
  },
  'unassigned records': {
    title: 'Unassigned records',
    text: 'Records of a task whose session is unknown. Assign them to a session, or discard them.',
  },
} as const;

export type TermName = keyof typeof TERMS;

/** Anchor of a term on the page `/help`. */
export function termAnchor(name: TermName): string {
  return name.replaceAll(' ', '-');
}

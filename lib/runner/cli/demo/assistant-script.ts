import { isDeepStrictEqual } from 'node:util';
import type { ClaudeSdk, QueryOptions } from '../../sources/claude/claude-sdk';
import { type Block, background, type Context, say, tool } from './scripted-model.mjs';

/**
 * The script of the demo's answering agent, for Claude Code (as the answers of its model) and for the built-in agent. It
 * is stateless: each answer depends only on the input since the previous one.
 */
export const ASSISTANT = 'talk-to-me';

const TESTS_COMMAND = 'node tests.mjs';
export const TESTS_FILE = 'tests.mjs';
const TESTS_TASK = 'Run the tests';
const QUESTION = 'Which colour should the release have?';
const COLOURS = ['Red', 'Blue', 'None'] as const;

const OFFERS = [
  '- **“Run the tests”**: I ask you for permission, start them in the background, end my turn, and wake up when they are done.',
  '- **“Ask me a question”**: I ask one and wait for your choice.',
  '- Anything else gets an answer, but not a clever one.',
].join('\n');

/** The first line of its session. */
export const LABEL = 'Demo: a scripted agent, without a model.';

/** The first message of its session, answered by the greeting. */
export const FIRST_MESSAGE = 'What can you do?';

export const GREETING = `I am a scripted demo agent: there is no model behind me, and everything I say was written in advance. But I am live: I receive what you write, run what you allow, and don’t run what you deny. The other agents here replay recordings and can’t answer.\n\nTry:\n\n${OFFERS}`;

/** A test run that is fun to watch and needs no packages. @param restMs before each test */
export const testsProgram = (
  restMs: number,
) => `const names = ['adds to the cart', 'removes from the cart', 'keeps the cart across a reload', 'pays once'];
for (const name of names) {
  await new Promise((resolve) => setTimeout(resolve, ${Math.round(restMs)}));
  console.log('ok', name);
}
console.log(names.length, 'tests passed');
`;

export type ScriptInput = Pick<Context, 'text' | 'results' | 'notices'>;

/** Returns the assistant's next texts and tool calls. Without a tool call, the turn ends. */
export function answer({ text, results, notices }: ScriptInput): Block[] {
  const news = [...notices.map(({ summary, status }) => endWords(summary, status)), ...results.map(resultWords)];
  const prompt = userText(text);
  if (news.length > 0 && prompt === '') return [say(news.join('\n\n'))];
  const [first, ...tools] = reply(prompt);
  return [say([...news, first].join('\n\n')), ...tools];
}

function reply(prompt: string): [string, ...Block[]] {
  if (/\b(?:tests?|run|build|background)\b/.test(prompt)) {
    return [
      'I will run the tests in the background. I need your permission for that.',
      background(TESTS_COMMAND, TESTS_TASK),
    ];
  }
  if (/\b(?:ask|question|choose|choice)\b/.test(prompt)) {
    const options = COLOURS.map((label) => ({ label, description: `${label === 'None' ? 'No colour' : label}, then` }));
    const question = { question: QUESTION, header: 'Colour', options, multiSelect: false };
    return ['Here is one.', tool('AskUserQuestion', { questions: [question] })];
  }
  return [
    `I have read that. I am scripted, so I can’t say anything about it; a real agent would.\n\nWhat I can do:\n\n${OFFERS}`,
  ];
}

function endWords(summary: string, status: string | undefined): string {
  const code = /exit code (\d{1,3})/.exec(summary)?.[1];
  if (status === 'completed') {
    return `The tests are done${code === undefined ? '' : `, with exit code ${code}`}. Nobody asked me just now: the end of the tests woke me, and this turn says so.`;
  }
  return `The tests ended ${code === undefined ? 'early' : `with exit code ${code}`}. Ask again if you want another run.`;
}

function resultWords({ tool: name, text, isError }: ScriptInput['results'][number]): string {
  if (name === 'AskUserQuestion') {
    const chosen = COLOURS.find((label) => text.includes(label));
    if (isError) return 'No answer, then. I’ll continue without one.';
    return chosen === undefined ? 'Thank you for the answer.' : `${chosen} it is. Thank you.`;
  }
  if (!isError) return 'The tests run in the background. My turn ends here; I will wake up when they are done.';
  if (text.includes('Nobody answered in time')) return 'Nobody answered in time, so I have not run anything.';
  if (text.includes(CHANGED_INPUT)) return 'I run only what I asked for, so I have not run anything.';
  return 'You said no, so I have not run anything.';
}

/** The text without Claude Code's additions for the model. */
function userText(text: string): string {
  const bare = ADDED.reduce((rest, [begin, end]) => without(rest, begin, end), text);
  return bare
    .replaceAll(/\[Request interrupted by user[^\]\n]{0,40}\]/g, '')
    .trim()
    .slice(0, 2_000)
    .toLowerCase();
}

const ADDED = [
  ['<system-reminder>', '</system-reminder>'],
  ['<task-notification>', '</task-notification>'],
] as const;

function without(text: string, begin: string, end: string): string {
  const [head = '', ...parts] = text.split(begin);
  return head + parts.map((part) => (part.includes(end) ? part.slice(part.indexOf(end) + end.length) : part)).join('');
}

const CHANGED_INPUT = 'The demo runs only what it asked for.';

/**
 * Denies every permission whose answer changes the tool's input: a demo that strangers can reach must not become a shell
 * for them.
 */
export function refuseChangedInput({ query }: ClaudeSdk): ClaudeSdk {
  return { query: ({ prompt, options }) => query({ prompt, options: { ...options, ...guarded(options) } }) };
}

function guarded({ canUseTool }: QueryOptions): Pick<QueryOptions, 'canUseTool'> {
  if (canUseTool === undefined) return {};
  return {
    async canUseTool(tool, input, context) {
      const verdict = await canUseTool(tool, input, context);
      // Answers to a question are part of its input.
      if (verdict.behavior === 'deny' || tool === 'AskUserQuestion') return verdict;
      return isDeepStrictEqual(verdict.updatedInput, input) ? verdict : { behavior: 'deny', message: CHANGED_INPUT };
    },
  };
}

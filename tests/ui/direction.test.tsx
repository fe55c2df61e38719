import type { Item, Task } from '@interlude/protocol/read-models';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { useTaskSlots } from '@/app/(console)/sessions/[sessionId]/session-transcript';
import { InsightItem } from '@/components/agents/insight-list';
import { QuestionAnswer } from '@/components/requests/question-answer';
import { RequestHead } from '@/components/requests/request-head';
import { RequestOutcome } from '@/components/requests/request-outcome';
import { SessionRow } from '@/components/sessions/session-row';
import { TaskSummary } from '@/components/tasks/task-summary';
import { InputParts } from '@/components/transcript/tool-input';
import { TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { TurnArticle } from '@/components/transcript/turn-article';
import { NowProvider } from '@/components/ui/clock';
import { LivenessProvider } from '@/components/ui/liveness';
import { Markdown } from '@/components/ui/markdown/markdown';
import { Words } from '@/components/ui/name';
import { aMessage, anInsight, aRequest, aSession, aTask, aTaskMoment, aTurn } from './rows';

const HEBREW = 'שלום, עולם!';

function Article({ items, tasks }: { items: Item[]; tasks: Task[] }) {
  const turn = aTurn({ items });
  return (
    <TranscriptSlotsProvider value={useTaskSlots(tasks, [turn])}>
      <TurnArticle turn={turn} flash={false} />
    </TranscriptSlotsProvider>
  );
}

function html(page: React.ReactNode): string {
  return renderToStaticMarkup(
    <NowProvider renderedAt={63_000}>
      <LivenessProvider stoppedAt={null} lastSignalAt={null} why="" isAway={false}>
        {page}
      </LivenessProvider>
    </NowProvider>,
  ).replaceAll('<!-- -->', '');
}

/** The tag around the words. */
function around(markup: string, words: string): string {
  const index = markup.indexOf(words);
  expect(index, markup).toBeGreaterThan(0);
  return markup.slice(markup.lastIndexOf('<', index), index);
}
const AUTO = /^<bdi>|dir="auto"/;

describe('right-to-left text', () => {
  it.each([
    ['a paragraph', HEBREW],
    ['a heading', `# ${HEBREW}`],
    ['a tight list item', `- ${HEBREW}`],
    ['a quote', `> ${HEBREW}`],
    ['a cell', `| a |\n|---|\n| ${HEBREW} |`],
    ['the head of a table', `| ${HEBREW} |\n|---|\n| a |`],
  ])('%s of an answer', (_what, text) => {
    expect(around(html(<Markdown text={text} />), HEBREW)).toMatch(AUTO);
  });

  it('has its list markers on the right', () => {
    expect(html(<Markdown text={`- ${HEBREW}`} />)).toMatch(/<ul[^>]*dir="rtl"[^>]*class="[^"]*ps-5/);
    expect(html(<Markdown text={`1. \`a\` ${HEBREW}\n2. b`} />)).toContain('<ol dir="rtl"');
    expect(html(<Markdown text={`> a ${HEBREW}`} />)).toContain('<blockquote dir="ltr"');
    expect(html(<Markdown text={`| ${HEBREW} |\n|---|\n| a |`} />)).toMatch(/<div dir="rtl"[^>]*><table/);
  });

  it.each([
    ['a message of a person', <Article key="" items={[aMessage({ role: 'user', text: HEBREW })]} tasks={[]} />],
    ['a title', <SessionRow key="" session={aSession({ title: HEBREW })} current={false} />],
    ['the last words', <SessionRow key="" session={aSession({ lastText: `**${HEBREW}**` })} current={false} />],
    ['a summary', <TaskSummary key="" text={HEBREW} />],
    ['a task', <Article key="" items={[aTaskMoment()]} tasks={[aTask({ description: HEBREW })]} />],
    ['a request', <RequestHead key="" item={aRequest({ title: HEBREW })} isOpen isAll={false} />],
    [
      'a failure of an agent',
      <InsightItem key="" insight={anInsight({ detail: `README ${HEBREW}` })} session={null} />,
    ],
    ['an outcome', <RequestOutcome key="" item={aRequest({ title: HEBREW, outcome: 'allowed' })} />],
    [
      'an option',
      <QuestionAnswer
        key=""
        item={aRequest({
          requestKind: 'question',
          input: { questions: [{ question: 'Which?', options: [{ label: HEBREW }, { label: 'b' }] }] },
        })}
        row={null}
        settled
        choices={[]}
        onChoices={() => {}}
        onAnswer={() => {}}
      />,
    ],
    [
      'a notice',
      <Article
        key=""
        items={[{ kind: 'notice', id: 'n', text: HEBREW, tone: 'info', code: 'x', at: 1, position: '3' } as never]}
        tasks={[]}
      />,
    ],
  ])('as %s', (_what, page) => {
    const markup = html(page).replace(/ (?:title|aria-label)="[^"]*"/g, '');
    expect(around(markup, HEBREW)).toMatch(AUTO);
  });

  it('leaves code left to right', () => {
    expect(html(<Markdown text={`${HEBREW} \`a(b)\``} />)).toContain('<code dir="ltr"');
    expect(html(<Markdown text={'```\na(b)\n```'} />)).toContain('<figure dir="ltr"');
    const input = html(
      <InputParts parts={[{ kind: 'command', name: 'command', text: `rm ${HEBREW}`, isJson: false }]} />,
    );
    expect(input).toContain('class="verbatim"');
    expect(input.match(/<bdi dir="rtl">/g)).toHaveLength(2);
  });
});

describe('Words', () => {
  it('labels characters that hide text or change its direction', () => {
    expect(html(<Words text={'a\u202eb\u200bc\rd'} />).match(/⟨.*?⟩/g)).toEqual(['⟨RLO⟩', '⟨ZWSP⟩', '⟨CR⟩']);
  });

  it('keeps joiners in words and emoji', () => {
    const text = 'می\u200cخواهم ⚠️ 👩‍💻 un\u00a0mot';
    expect(html(<Words text={text} />)).toBe(text);
  });

  it('labels joiners, too, when strict', () => {
    expect(html(<Words text={'a\u200cb'} strict />)).toContain('⟨ZWNJ⟩');
  });
});

it('RequestHead shows a title verbatim when the request has no input', () => {
  const alone = html(<RequestHead item={aRequest({ title: 'rm א ב', input: null })} isOpen isAll />);
  expect(alone).toContain('rm <bdi dir="rtl">א</bdi> <bdi dir="rtl">ב</bdi>');
  const markup = html(<RequestOutcome item={aRequest({ title: 'rm **א**', input: null, outcome: 'allowed' })} />);
  expect(markup).toContain('rm **<bdi dir="rtl">א</bdi>**');
});

import type { Task, Turn } from '@interlude/protocol/read-models';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { useTaskSlots } from '@/app/(console)/sessions/[sessionId]/session-transcript';
import { TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { TurnArticle } from '@/components/transcript/turn-article';
import { NowProvider } from '@/components/ui/clock';
import { LivenessProvider } from '@/components/ui/liveness';
import { Markdown } from '@/components/ui/markdown/markdown';
import { labelOf } from '@/components/ui/verbatim';
import { renderedText } from '../support/rendered-text';
import { aMessage, aTask, aTaskMoment, aTurn } from './rows';

function Page({ turns, tasks }: { turns: Turn[]; tasks: Task[] }) {
  return (
    <NowProvider renderedAt={63_000}>
      <LivenessProvider stoppedAt={null} heardAt={null} why="" isAway={false}>
        <TranscriptSlotsProvider value={useTaskSlots(tasks, turns)}>
          {turns.map((turn) => (
            <TurnArticle key={turn.id} turn={turn} flash={false} />
          ))}
        </TranscriptSlotsProvider>
      </LivenessProvider>
    </NowProvider>
  );
}
const render = (turns: Turn[], tasks: Task[] = []) =>
  renderToStaticMarkup(<Page turns={turns} tasks={tasks} />).replaceAll('<!-- -->', '');
const html = (text: string) => renderToStaticMarkup(<Markdown text={text} />);

/** Texts that a terminal would show differently. */
const HIDING = [
  ['what a carriage return would overwrite', 'deleted the database\rall tests pass'],
  ['a title of the terminal', 'deleted \u001b]0;the database\u0007 nothing'],
  ['lines erased', 'deleted the database\u001b[2K\u001b[1Gall tests pass'],
  ['an 8-bit string of the terminal', 'deleted \u009dthe database\u009c nothing'],
  ['erasing backwards', 'deleted\b\b\b\b\b\b\bkept'],
  ['text turned around', 'kept \u202edeleted'],
  ['zero widths', 'de\u200bleted'],
  ['tags', 'kept\u{e0064}\u{e0065}\u{e006c}'],
] as const;

/** Characters that must not reach the page; symbols replace them. */
const RAW = ['\r', '\b', '\u001b', '\u009d', '\u200b', '\u202e', '\u{e0064}'];

describe('texts in summaries', () => {
  it.each(HIDING)('of a task on its card, in its end and in the turn it woke: %s', (_what, summary) => {
    const begun = aTask({ status: 'completed', endedAt: 4_000, summary, answeredInTurnId: 'r2' });
    const turns = [
      aTurn({ id: 'r1', items: [aTaskMoment()] }),
      aTurn({
        id: 'r2',
        kind: 'between-run',
        position: '20',
        trigger: { kind: 'task', taskIds: ['t1'] },
        items: [aMessage({ position: '22' })],
      }),
    ];
    const markup = render(turns, [begun]);
    expect(renderedText(markup).split(summary)).toHaveLength(3);
    expect(RAW.filter((sign) => markup.includes(sign))).toEqual([]);
    const told = aTurn({ id: 'r3', kind: 'none', items: [aTaskMoment({ position: '30', phase: 'completed' })] });
    expect(renderedText(render([told], [{ ...begun, startedInTurnId: null }]))).toContain(summary);
  });

  it.each(HIDING)('of errors of tasks and turns: %s', (_what, error) => {
    const failed = aTask({ status: 'failed', endedAt: 4_000, error });
    const turn = aTurn({ state: 'failed', error: { message: error, code: null }, items: [aTaskMoment()] });
    const markup = render([turn], [failed]);
    expect(renderedText(markup).split(error)).toHaveLength(3);
    expect(RAW.filter((sign) => markup.includes(sign))).toEqual([]);
  });

  it('are shown as far as a page can, and say that they continue', () => {
    const summary = '\u200b\u200e'.repeat(5_000);
    const markup = render(
      [aTurn({ items: [aTaskMoment()] })],
      [aTask({ status: 'completed', endedAt: 4_000, summary })],
    );
    expect(markup.match(/verbatim-sign/g)).toHaveLength(100);
    expect(markup).toContain('</span>…');
  });
});

/** Characters that are invisible or only change their neighbours. */
const FILLERS = [
  ...[0xad, 0x34f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180e, 0x2800, 0x3164, 0xffa0, 0xfff9, 0xfffa, 0xfffb],
  ...[0x206a, 0x206b, 0x206c, 0x206d, 0x206e, 0x206f, 0x1bca0, 0x1bca3, 0x1d173, 0x1d17a],
].map((code) => String.fromCodePoint(code));

describe('messages', () => {
  const SAID: [what: string, text: string, shown: string][] = [
    ['what a carriage return would overwrite', 'deleted it\rall is well', 'deleted it\nall is well'],
    ['lines of Windows', 'one\r\ntwo', 'one\ntwo'],
    ['a title of the terminal', 'rm \u001b]0;-rf\u0007 x', 'rm ⟨ESC⟩]0;-rf⟨BEL⟩ x'],
    ['an 8-bit string', 'rm \u009d-rf\u009c x', 'rm ⟨OSC⟩-rf⟨ST⟩ x'],
    ['a lone escape', 'x\u001b', 'x⟨ESC⟩'],
    ['erasing backwards', 'rm\b\b', 'rm⟨BS ×2⟩'],
    ['text turned around', 'kept \u202edeleted', 'kept ⟨RLO⟩deleted'],
    ['tags', 'kept\u{e0064}', 'kept⟨U+E0064⟩'],
    ['colours', '\u001b[1;31mred\u001b[0m', '⟨ESC⟩[1;31mred⟨ESC⟩[0m'],
    ['numbers of what looks like a colour', 'to \u009b12345678;9m me', 'to ⟨CSI⟩12345678;9m me'],
    ['what stands within one', 'rm \u001b[0 /*m; kill \u001b[1;2;3m pids', 'rm ⟨ESC⟩[0 /*m; kill ⟨ESC⟩[1;2;3m pids'],
    ['lines that JavaScript knows', 'one\u2028two\u2029three', 'one\ntwo\nthree'],
    ...FILLERS.map((sign): [string, string, string] => [labelOf(sign), `a${sign}b`, `a⟨${labelOf(sign)}⟩b`]),
    ['words of joined letters', 'می\u200cخواهم', 'می\u200cخواهم'],
    ['forms of one sign', '\u8fba\u{e0100} \u182d\u180b', '\u8fba\u{e0100} \u182d\u180b'],
    ['the spaces of other scripts', 'a\u00a0b\u3000c', 'a\u00a0b\u3000c'],
    ['emoji of several', '👩‍💻 ❤️', '👩‍💻 ❤️'],
    ['half a character', 'x\ud83d', 'x\ufffd'],
  ];

  it.each(SAID)('of an agent hide nothing: %s', (_what, text, shown) => {
    expect(
      html(text)
        .replace(/<[^>]*>/g, '')
        .trim(),
    ).toBe(shown);
  });

  it.each([
    ['&#8238;', '⟨RLO⟩'],
    ['&#x202E;', '⟨RLO⟩'],
    ['&#27;', '⟨ESC⟩'],
    ['&#x9b;', '⟨CSI⟩'],
    ['&#8203;', '⟨ZWSP⟩'],
    ['&#917604;', '⟨U+E0064⟩'],
    ['&#xd83d;', '\ufffd'],
  ])('by an agent hides nothing in an entity: %s', (entity, shown) => {
    expect(html(`kept ${entity}deleted`)).toContain(`kept ${shown}deleted`);
    expect(html(`![kept ${entity}](http://a.test)`)).toContain(`image: kept ${entity.replace('&', '&amp;')}<`);
    expect(html(`[kept ${entity}](http://a.test)`)).toContain(`>kept ${shown}<`);
  });

  it.each(SAID)('of a person hide nothing: %s', (_what, text, shown) => {
    expect(render([aTurn({ items: [aMessage({ role: 'user', text })] })])).toContain(`>${shown}</p>`);
  });
});

/** What one request may be given, in one ordinary record, that costs a careless page far more than what it holds. */
export interface HostileInput {
  name: string;
  kind: 'permission' | 'question';
  input: Record<string, unknown>;
}

/** Zero widths by turns: each is a sign of its own. */
export const signs = (count: number): string =>
  Array.from({ length: count }, (_, at) => String.fromCharCode(0x200b + (at % 4))).join('');

/** Names, values and options, each of them short enough where it stands alone. */
export function hostileInputs(): HostileInput[] {
  const keys = (count: number, entry: (at: number) => [string, unknown]) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => entry(at)));
  const permissions: [string, Record<string, unknown>][] = [
    ['long key', { ['k'.repeat(800_000)]: 1 }],
    ['key of signs', { [`k${signs(100_000)}`]: 1 }],
    ['key from right to left', { ['אa'.repeat(100_000)]: 1 }],
    ['key of spaces', { ['k  '.repeat(1_300)]: 1 }],
    ['nested key of signs', { a: { [signs(100_000)]: 1 } }],
    ['values of signs', keys(100, (at) => [`k${at}`, signs(2_900)])],
    ['values from right to left', keys(100, (at) => [`k${at}`, 'אa'.repeat(1_500)])],
    ['values of lines', keys(100, (at) => [`k${at}`, 'line  \n'.repeat(1_000)])],
    ['thirty values of signs', keys(30, (at) => [`k${at}`, signs(2_900)])],
    ['thirty values from right to left', keys(30, (at) => [`k${at}`, 'אa'.repeat(1_500)])],
    ['thirty long values', keys(30, (at) => [`k${at}`, 'x'.repeat(6_000)])],
    ['long values', keys(100, (at) => [`k${at}`, 'x'.repeat(6_000)])],
    ['keys of signs', keys(100, (at) => [`k${at}${signs(2_900)}`, 1])],
    ['keys of some signs', keys(30, (at) => [`k${at}${signs(3)}`, signs(300)])],
    ['a few values of signs', keys(5, (at) => [`k${at}`, signs(2_900)])],
    ['command and texts of signs', { command: signs(9_000), content: signs(9_000), new_string: 'אa'.repeat(9_000) }],
  ];
  const options = (count: number, text: string) =>
    Array.from({ length: count }, (_, at) => ({ label: `${at}${text}`, description: text }));
  const questions: [string, Record<string, unknown>][] = [
    ['options of signs', { questions: [{ question: 'Which?', options: options(100, signs(1_400)) }] }],
    ['options of some signs', { questions: [{ question: 'Which?', options: options(100, signs(4)) }] }],
    ['options from right to left', { questions: [{ question: 'Which?', options: options(100, 'אa'.repeat(700)) }] }],
    ['long options', { questions: [{ question: 'Which?', options: options(100, 'x'.repeat(4_000)) }] }],
    ['question of signs', { questions: [{ question: signs(9_900) }, { question: 'Why?' }] }],
    [
      'questions of signs',
      { questions: Array.from({ length: 90 }, (_, at) => ({ question: `${at}${signs(900)}`, header: signs(400) })) },
    ],
    ['question from right to left', { questions: [{ question: 'אa'.repeat(100_000) }] }],
  ];
  return [
    ...permissions.map(([name, input]) => ({ name, input, kind: 'permission' as const })),
    ...questions.map(([name, input]) => ({ name, input, kind: 'question' as const })),
  ];
}

import { Words } from './name';

const MAX_CHARACTERS = 1_000;

export function SentenceList({ sentences }: { sentences: readonly string[] }) {
  return (
    <ul className="list-disc space-y-0.5 pl-4 text-ink-3 text-xs marker:text-line-strong">
      {sentences.map((sentence) => (
        <li key={sentence} dir="auto" className="max-w-prose [overflow-wrap:anywhere]">
          <Words text={sentence} max={MAX_CHARACTERS} />
        </li>
      ))}
    </ul>
  );
}

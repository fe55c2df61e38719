/** A part of a whole: as a bar, and in percent. */
export function Share({ share }: { share: number }) {
  const percent = share * 100;
  return (
    <span className="flex items-center gap-2">
      <span aria-hidden="true" className="h-1.5 min-w-16 flex-1 overflow-hidden rounded-full bg-sunken">
        <span className="block h-full rounded-full bg-ink-3" style={{ width: `${percent}%` }} />
      </span>
      <span className="tabular w-10 text-right text-2xs">
        {percent > 0 && percent < 1 ? '< 1' : Math.round(percent)} %
      </span>
    </span>
  );
}

DROP INDEX `sessions_by_answer`;--> statement-breakpoint
ALTER TABLE `sessions` ADD `gives_up_at` integer;--> statement-breakpoint
CREATE INDEX `sessions_by_giving_up` ON `sessions` (`gives_up_at`) WHERE gives_up_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `sessions_by_answer` ON `sessions` (`answer_by`) WHERE answer_by IS NOT NULL;--> statement-breakpoint
ALTER TABLE `runners` ADD `is_over` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `tasks` ADD `presumed` text;--> statement-breakpoint
CREATE INDEX `tasks_presumed` ON `tasks` (`session_id`,`position`) WHERE presumed IS NOT NULL;--> statement-breakpoint
UPDATE `sessions` SET `memory` = json_set(`memory`,
  '$.fold.observed.reportAfter', iif(`memory`->>'$.fold.observed.reportIsAfter' = 1, 1, 0),
  '$.fold.observed.messages', json_object(
    'count', 1,
    'claimed', json_object('message', 1, 'turn', `memory`->'$.fold.observed.messageTurn'),
    'unclaimed', json_array(),
    'ids', json_array(`memory`->>'$.fold.observed.messageId')))
WHERE `memory`->>'$.fold.observed.messageId' IS NOT NULL;

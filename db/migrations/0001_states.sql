CREATE INDEX `producer_sessions_by_session` ON `producer_sessions` (`session_id`);--> statement-breakpoint
CREATE INDEX `events_missing` ON `events` (`session_id`,`position`) WHERE name IN ('interlude:lost', 'interlude:quarantined');--> statement-breakpoint
DROP INDEX `sessions_under_way`;--> statement-breakpoint
DROP INDEX `sessions_by_answer`;--> statement-breakpoint
ALTER TABLE `sessions` ADD `has_ended` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `sessions` ADD `state_due_at` integer;--> statement-breakpoint
CREATE INDEX `sessions_by_due` ON `sessions` (`state_due_at`) WHERE state_due_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `sessions_present` ON `sessions` (`agent_id`) WHERE NOT has_ended AND NOT is_away;--> statement-breakpoint
CREATE INDEX `sessions_by_answer` ON `sessions` (`answer_by`) WHERE state = 'needs-input' AND answer_by IS NOT NULL;--> statement-breakpoint
ALTER TABLE `sessions` DROP COLUMN `is_under_way`;--> statement-breakpoint
ALTER TABLE `agents` ADD `is_silent` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `agents_by_silence` ON `agents` (`last_seen_at`,`id`) WHERE NOT is_silent;--> statement-breakpoint
UPDATE `agents` SET `body` = json_set(`body`, '$.sessionStates', json_object(
	'needs-input', 0, 'failed', 0, 'working', 0, 'waiting-on-background', 0, 'starting', 0, 'unknown', 0, 'idle', 0, 'complete', 0, 'exited', 0));--> statement-breakpoint
UPDATE `sessions` SET
	`has_ended` = coalesce(json_type(`memory`, '$.fold.ended') = 'object', 0),
	`state` = CASE `state` WHEN 'waiting' THEN 'needs-input' WHEN 'done' THEN 'exited' ELSE `state` END,
	`state_due_at` = 0,
	`body` = json_set(`body`,
		'$.observations', json_object('session', json_object('observedAt', `last_event_at`, 'turnId', NULL, 'value', NULL)),
		'$.arrangement', json_object('name', NULL, 'pinnedAt', NULL, 'archivedAt', NULL, 'seenState', NULL),
		'$.evidence', json_object('rule', 15, 'source', 'session', 'observedAt', `last_event_at`));--> statement-breakpoint
UPDATE `sessions` SET `body` = json_set(`body`, '$.observations.turn', json_object(
	'observedAt', `body` ->> '$.stateSince', 'turnId', `body` ->> '$.openTurnId', 'value', json_object('state', 'running')))
	WHERE `body` ->> '$.openTurnId' IS NOT NULL;--> statement-breakpoint
UPDATE `sessions` SET `body` = json_set(`body`, '$.observations.turn', json_object(
	'observedAt', `last_event_at`, 'turnId', NULL,
	'value', json_object('state', `memory` ->> '$.fold.lastTurn.state', 'message', `memory` ->> '$.fold.lastTurn.message')))
	WHERE `body` ->> '$.openTurnId' IS NULL AND json_type(`memory`, '$.fold.lastTurn') = 'object';--> statement-breakpoint
UPDATE `sessions` SET `body` = json_set(`body`, '$.observations.process', json_object(
	'observedAt', `memory` ->> '$.fold.ended.at', 'turnId', NULL,
	'value', json_object('code', iif(`memory` ->> '$.fold.ended.failed', 1, NULL), 'signal', NULL, 'reason', `memory` ->> '$.fold.ended.reason')))
	WHERE `has_ended`;--> statement-breakpoint
UPDATE `sessions` SET `body` = json_set(`body`, '$.observations.request', json_object(
	'observedAt', `body` ->> '$.stateSince', 'turnId', `body` ->> '$.openTurnId',
	'value', coalesce(`memory` ->> '$.fold.pendingRequests[0].title', 'The agent asks')))
	WHERE `body` ->> '$.pendingRequestCount' > 0;--> statement-breakpoint
UPDATE `sessions` SET `body` = json_set(`body`, '$.observations.task', json_object(
	'observedAt', `last_event_at`, 'turnId', NULL, 'value', `body` ->> '$.runningTaskCount'))
	WHERE `body` ->> '$.runningTaskCount' > 0;--> statement-breakpoint
UPDATE `agents` SET `body` = json_set(`body`, '$.sessionStates', (
	SELECT json_group_object(`name`, `count`) FROM (
		SELECT `name`, (SELECT count(*) FROM `sessions` AS s WHERE s.`agent_id` = `agents`.`id` AND s.`state` = `name`) AS `count`
		FROM (SELECT `key` AS `name` FROM json_each(`agents`.`body`, '$.sessionStates')))));

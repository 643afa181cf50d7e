/** Procedures that raise errors and check names and options, for `pawl_start` and `pawl_signal` (sql-procedures.ts). */
import { MAX_DURATION_MS } from "../../core/naming/duration.js";
import { MAX_TAGS, NAME_LIMIT_BYTES } from "../../core/naming/names.js";
import { maxInstantMs, maxPriority, maxReasonLength, sqlErrors } from "../sql/sql-calls.js";
import { isMariadb, jsonField, jsonTypeName, pattern, procedure, quoted, raise, text } from "./procedure.js";

const errorNumbers = Object.entries(sqlErrors)
  .map(([code, { errno }]) => `WHEN '${code}' THEN ${errno}`)
  .join(" ");

/** A message has at most 128 characters on MySQL and 512 on MariaDB; a longer one would be another error. */
const createRaise = procedure(
  "pawl_internal_raise",
  ["IN p_code VARCHAR(40) CHARACTER SET utf8mb4", `IN p_message ${text}`],
  `
BEGIN
  DECLARE v_errno INT;
  DECLARE v_message TEXT CHARACTER SET utf8mb4;
  SET v_errno = CASE p_code ${errorNumbers} END;
  SET v_message = LEFT(p_message, CASE WHEN ${isMariadb} THEN 500 ELSE 128 END);
  SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = v_errno, MESSAGE_TEXT = v_message;
END`,
);

/** The characters that JavaScript's trim() removes, apart from control characters, which are refused before. */
const spaces = String.raw`[ \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]`;

/** The rules of core/naming/names.ts. No text of the server contains half of a surrogate pair. */
const createName = procedure(
  "pawl_internal_name",
  ["IN p_noun VARCHAR(40) CHARACTER SET utf8mb4", `IN p_name ${text}`],
  `
BEGIN
  DECLARE v_problem TEXT CHARACTER SET utf8mb4;
  SET v_problem = CASE
    WHEN p_name IS NULL THEN 'must be a string'
    WHEN CHAR_LENGTH(p_name) = 0 THEN 'must not be empty'
    WHEN LENGTH(p_name) > ${NAME_LIMIT_BYTES} THEN CONCAT('is ', LENGTH(p_name), ' bytes; the limit is ${NAME_LIMIT_BYTES}')
    WHEN p_name REGEXP ${pattern(String.raw`\p{Cc}`)} THEN 'contains a control character'
    WHEN p_name REGEXP ${pattern(`^${spaces}|${spaces}$`)} THEN 'must not begin or end with a space'
  END;
  IF v_problem IS NOT NULL THEN
    ${raise(
      "INVALID_INPUT",
      "CONCAT('The ', p_noun, ' ', COALESCE(JSON_QUOTE(CASE WHEN CHAR_LENGTH(p_name) > 60 THEN CONCAT(LEFT(p_name, 60), '...') ELSE p_name END), 'NULL'), ' ', v_problem, '; choose another.')",
    )}
  END IF;
END`,
);

/** Returns the name in a JSON value. */
const createNameOption = procedure(
  "pawl_internal_name_option",
  ["IN p_noun VARCHAR(40) CHARACTER SET utf8mb4", `IN p_value ${text}`, `OUT p_name ${text}`],
  `
BEGIN
  IF JSON_TYPE(p_value) <> 'STRING' THEN
    ${raise("INVALID_INPUT", `CONCAT('The ', p_noun, ' ', ${jsonTypeName("p_value")}, ' must be a string; choose another.')`)}
  END IF;
  SET p_name = JSON_UNQUOTE(p_value);
  CALL pawl_internal_name(p_noun, p_name);
END`,
);

const createCheckOptions = procedure(
  "pawl_internal_check_options",
  ["IN p_subject VARCHAR(40) CHARACTER SET utf8mb4", `IN p_options ${text}`, "IN p_known TEXT CHARACTER SET utf8mb4"],
  `
BEGIN
  DECLARE v_keys ${text};
  DECLARE v_key ${text};
  DECLARE v_index INT DEFAULT 0;
  IF NOT JSON_VALID(p_options) THEN
    ${raise("INVALID_INPUT", "CONCAT(p_subject, ' takes its options as a JSON object, and this text is not JSON.')")}
  END IF;
  IF JSON_TYPE(p_options) <> 'OBJECT' THEN
    ${raise(
      "INVALID_INPUT",
      `CONCAT(p_subject, ' takes its options as an object, not ', CASE JSON_TYPE(p_options) WHEN 'NULL' THEN 'null' WHEN 'ARRAY' THEN 'a list' ELSE CONCAT('a ', ${jsonTypeName("p_options")}) END, '.')`,
    )}
  END IF;
  SET v_keys = JSON_KEYS(p_options);
  WHILE v_index < JSON_LENGTH(v_keys) DO
    SET v_key = JSON_UNQUOTE(JSON_EXTRACT(v_keys, CONCAT('$[', v_index, ']')));
    IF FIND_IN_SET(CAST(v_key AS BINARY), CAST(p_known AS BINARY)) = 0 THEN
      ${raise("INVALID_INPUT", `CONCAT(p_subject, ' has no option "', v_key, '"; its options are ', REPLACE(p_known, ',', ', '), '.')`)}
    END IF;
    SET v_index = v_index + 1;
  END WHILE;
END`,
);

/** Checks the hero of a new run as define/hero.ts does. Both results are NULL if the run has none. */
const createHero = procedure(
  "pawl_internal_hero",
  [`IN p_workflow ${text}`, `IN p_policy ${text}`, `IN p_hero ${text}`, `OUT p_type ${text}`, `OUT p_id ${text}`],
  `
check_hero: BEGIN
  DECLARE v_type ${text};
  IF JSON_TYPE(${jsonField("p_policy", "type")}) = 'STRING' THEN
    SET v_type = JSON_UNQUOTE(${jsonField("p_policy", "type")});
  END IF;
  IF p_hero IS NULL OR JSON_TYPE(p_hero) = 'NULL' THEN
    IF JSON_UNQUOTE(${jsonField("p_policy", "required")}) = 'true' THEN
      ${raise(
        "INVALID_INPUT",
        `CONCAT('A run of workflow "', p_workflow, '" is about a hero; start it with { hero: { type: "', COALESCE(v_type, '...'), '", id: "..." } }.')`,
      )}
    END IF;
    LEAVE check_hero;
  END IF;
  IF JSON_TYPE(p_hero) <> 'OBJECT' OR ${jsonField("p_hero", "type")} IS NULL OR ${jsonField("p_hero", "id")} IS NULL THEN
    ${raise(
      "INVALID_INPUT",
      `CONCAT('The hero of a run of workflow "', p_workflow, '" is given by type and id, { type: "', COALESCE(v_type, '...'), '", id: "..." }, not as ',
      CASE JSON_TYPE(p_hero)
        WHEN 'OBJECT' THEN CONCAT('an object with ', CASE JSON_LENGTH(p_hero) WHEN 0 THEN 'nothing' ELSE REPLACE(TRIM(LEADING '[' FROM TRIM(TRAILING ']' FROM JSON_KEYS(p_hero))), '"', '') END)
        ELSE CONCAT('a ', ${jsonTypeName("p_hero")}) END, '.')`,
    )}
  END IF;
  SET p_type = JSON_UNQUOTE(${jsonField("p_hero", "type")});
  IF v_type IS NOT NULL AND CAST(p_type AS BINARY) <> CAST(v_type AS BINARY) THEN
    ${raise("INVALID_INPUT", `CONCAT('A run of workflow "', p_workflow, '" is about a hero of type "', v_type, '", not "', p_type, '".')`)}
  END IF;
  SET p_id = JSON_UNQUOTE(${jsonField("p_hero", "id")});
  IF ${jsonTypeName(jsonField("p_hero", "id"))} = 'number' THEN
    ${raise(
      "INVALID_INPUT",
      `CONCAT('The hero''s id is the number ', p_id, ', but a hero''s id must be a string; write { "type": "', p_type, '", "id": "', p_id, '" }.')`,
    )}
  END IF;
  CALL pawl_internal_name_option('hero type', ${jsonField("p_hero", "type")}, p_type);
  CALL pawl_internal_name_option('hero id', ${jsonField("p_hero", "id")}, p_id);
END`,
);

const createPriority = procedure(
  "pawl_internal_priority",
  [`IN p_value ${text}`, "OUT p_priority INT"],
  `
BEGIN
  DECLARE v_number DOUBLE DEFAULT 0.5;
  IF ${jsonTypeName("p_value")} = 'number' THEN
    SET v_number = p_value + 0;
  END IF;
  IF v_number <> FLOOR(v_number) OR ABS(v_number) > ${maxPriority} THEN
    ${raise("INVALID_INPUT", "CONCAT('A priority must be a whole number between -1,000,000 and 1,000,000, not ', JSON_UNQUOTE(p_value), '.')")}
  END IF;
  SET p_priority = v_number;
END`,
);

/** Returns the encoded tags, or NULL if there are none, as store/sql/records.ts encodes them. */
const createTags = procedure(
  "pawl_internal_tags",
  [`IN p_defaults ${text}`, `IN p_added ${text}`, `OUT p_tags ${text}`],
  `
BEGIN
  DECLARE v_tag ${text};
  DECLARE v_index INT DEFAULT 0;
  DECLARE v_default_count INT DEFAULT COALESCE(JSON_LENGTH(p_defaults), 0);
  DECLARE v_count INT DEFAULT COALESCE(JSON_LENGTH(p_added), 0) + v_default_count;
  IF JSON_TYPE(p_added) <> 'ARRAY' THEN
    ${raise("INVALID_INPUT", `CONCAT('Tags are a list of texts, not a ', ${jsonTypeName("p_added")}, '.')`)}
  END IF;
  IF v_count > ${MAX_TAGS} AND p_added IS NOT NULL THEN
    ${raise("INVALID_INPUT", `CONCAT('A run has at most ${MAX_TAGS} tags, not ', v_count, '; put the rest into its input.')`)}
  END IF;
  WHILE v_index < v_count DO
    IF v_index < v_default_count THEN
      SET v_tag = JSON_UNQUOTE(JSON_EXTRACT(p_defaults, CONCAT('$[', v_index, ']')));
    ELSE
      CALL pawl_internal_name_option('tag', JSON_EXTRACT(p_added, CONCAT('$[', v_index - v_default_count, ']')), v_tag);
    END IF;
    SET p_tags = CONCAT(COALESCE(CONCAT(p_tags, ','), '['), ${quoted("v_tag")});
    SET v_index = v_index + 1;
  END WHILE;
  SET p_tags = CONCAT(p_tags, ']');
END`,
);

/** Returns who gives the command, and why, as JSON text; NULL if the caller says neither. */
const createAudit = procedure(
  "pawl_internal_audit",
  [`IN p_options ${text}`, `OUT p_audit ${text}`],
  `
BEGIN
  DECLARE v_by ${text};
  DECLARE v_reason ${text};
  IF JSON_TYPE(${jsonField("p_options", "reason")}) = 'STRING' THEN
    SET v_reason = JSON_UNQUOTE(${jsonField("p_options", "reason")});
  ELSEIF JSON_TYPE(${jsonField("p_options", "reason")}) <> 'NULL' THEN
    ${raise("INVALID_INPUT", `CONCAT('A reason is a text, not a ', ${jsonTypeName(jsonField("p_options", "reason"))}, '.')`)}
  END IF;
  IF CHAR_LENGTH(v_reason) > ${maxReasonLength} THEN
    SET v_reason = CONCAT(LEFT(v_reason, ${maxReasonLength}), '...');
  END IF;
  IF ${jsonField("p_options", "by")} IS NOT NULL THEN
    CALL pawl_internal_name_option('name of a user', ${jsonField("p_options", "by")}, v_by);
  END IF;
  IF v_by IS NOT NULL OR v_reason IS NOT NULL THEN
    SET p_audit = CONCAT('{', CONCAT_WS(',', CONCAT('"by":', ${quoted("v_by")}), CONCAT('"reason":', JSON_QUOTE(v_reason))), '}');
  END IF;
END`,
);

const isoPattern =
  "^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$";

/**
 * Returns the instant of ISO 8601 text, or NULL. Text without a time zone is refused, because its instant is not known.
 * The server reads six digits after the second, which end at character 26.
 */
const createInstant = procedure(
  "pawl_internal_instant",
  [`IN p_text ${text}`, "OUT p_ms DOUBLE"],
  `
BEGIN
  DECLARE v_zone VARCHAR(6) CHARACTER SET utf8mb4;
  DECLARE v_local DATETIME(6);
  DECLARE CONTINUE HANDLER FOR SQLEXCEPTION, SQLWARNING SET v_local = NULL;
  IF p_text REGEXP '${isoPattern}' THEN
    SET v_zone = REGEXP_SUBSTR(SUBSTRING(p_text, 12), '(Z|[+-].*)$');
    SET v_local = CAST(REPLACE(LEFT(p_text, LEAST(CHAR_LENGTH(p_text) - CHAR_LENGTH(v_zone), 26)), 'T', ' ') AS DATETIME(6));
    SET v_zone = RPAD(REPLACE(REPLACE(v_zone, ':', ''), 'Z', '+'), 5, '0');
    SET p_ms = FLOOR(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', v_local) / 1000)
      - CONCAT(LEFT(v_zone, 1), '1') * (SUBSTRING(v_zone, 2, 2) * 60 + SUBSTRING(v_zone, 4, 2)) * 60000;
  END IF;
END`,
);

/** Returns when a new run is due. */
const createDue = procedure(
  "pawl_internal_due",
  [`IN p_options ${text}`, "IN p_at BIGINT", "OUT p_due_at BIGINT"],
  `
BEGIN
  DECLARE v_delay ${text} DEFAULT ${jsonField("p_options", "delay")};
  DECLARE v_start_at ${text} DEFAULT ${jsonField("p_options", "startAt")};
  DECLARE v_problem VARCHAR(40) CHARACTER SET utf8mb4;
  DECLARE v_ms DOUBLE;
  SET p_due_at = p_at;
  IF v_delay IS NOT NULL AND v_start_at IS NOT NULL THEN
    ${raise("INVALID_INPUT", "'A start takes either `delay` or `startAt`, not both.'")}
  ELSEIF v_delay IS NOT NULL THEN
    SET v_problem = CASE
      WHEN ${jsonTypeName("v_delay")} <> 'number' THEN 'is not a number'
      WHEN v_delay + 0 < 0 THEN 'is negative'
      WHEN v_delay + 0 > ${MAX_DURATION_MS} THEN 'is longer than 1000 years'
    END;
    IF v_problem IS NOT NULL THEN
      ${raise("INVALID_INPUT", "CONCAT('The delay ', v_delay, ' ', v_problem, '; write a number of milliseconds, such as 60000 for a minute.')")}
    END IF;
    SET p_due_at = p_at + FLOOR(v_delay + 0.5);
  ELSEIF v_start_at IS NOT NULL THEN
    IF ${jsonTypeName("v_start_at")} = 'number' THEN
      SET v_ms = FLOOR(v_start_at + 0);
    ELSEIF JSON_TYPE(v_start_at) = 'STRING' THEN
      CALL pawl_internal_instant(JSON_UNQUOTE(v_start_at), v_ms);
    END IF;
    IF v_ms IS NULL OR ABS(v_ms) > ${maxInstantMs} THEN
      ${raise(
        "INVALID_INPUT",
        `CONCAT('startAt is not a valid date but ', v_start_at, '; pass ISO 8601 text with a time zone, such as "2030-01-31T09:00:00Z", or a number of milliseconds since 1970.')`,
      )}
    END IF;
    SET p_due_at = v_ms;
  END IF;
END`,
);

export const checkProcedures: readonly string[] = [
  ...createRaise,
  ...createName,
  ...createNameOption,
  ...createCheckOptions,
  ...createHero,
  ...createPriority,
  ...createTags,
  ...createAudit,
  ...createInstant,
  ...createDue,
];

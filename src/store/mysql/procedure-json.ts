/**
 * Procedures that turn the JSON text of a caller into text that core/encoding/decode.ts reads, for `pawl_start` and
 * `pawl_signal` (sql-procedures.ts). They work on text, because the JSON functions would change numbers.
 *
 * Loops over a text use LONGBLOB variables: in a text of characters, the server would count from the beginning to find a
 * position.
 */
import { DEFAULT_LIMIT_BYTES } from "../../core/encoding/encode.js";
import { ENCODED_UNDEFINED, MARKER, MAX_DEPTH, TAG, tooDeepMessage } from "../../core/encoding/tagged-json.js";
import { backslash, binaryPattern, isMariadb, procedure, raise, text } from "./procedure.js";

/** Bytes that no JSON text contains. */
const [stringMark, valueMark] = ["0x01", "0x02"];

const escapedText = String.raw`[^"\\\x00-\x1f]*+`;
const stringPattern = String.raw`"${escapedText}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})${escapedText})*+"`;
const scalarPattern = String.raw`-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?|true|false|null`;
/** A list or an object without lists and objects in it, after strings and other values were replaced by their marks. */
const flatPattern = String.raw`\[(?:[\x01\x02](?:,[\x01\x02])*+)?\]|\{(?:\x01:[\x01\x02](?:,\x01:[\x01\x02])*+)?\}`;

/**
 * Refuses text that JSON.parse would refuse, because a run with such an input could not be read. MySQL's JSON_VALID is as
 * strict, and reads 100 levels. MariaDB's is not strict (it accepts `1.` and unknown escapes) and reads 31 levels. There,
 * strings and other values are replaced by marks, and then the innermost lists and objects, level by level, until one mark
 * is left. A megabyte takes about 50 ms.
 */
const createCheckJson = procedure(
  "pawl_internal_check_json",
  [`IN p_json ${text}`, `IN p_label ${text}`],
  `
BEGIN
  DECLARE v_rest LONGBLOB;
  DECLARE v_previous LONGBLOB;
  DECLARE v_depth INT DEFAULT 0;
  DECLARE v_is_valid BOOLEAN DEFAULT TRUE;
  IF ${isMariadb} THEN
    SET v_rest = CAST(p_json AS BINARY);
    SET v_is_valid = LOCATE(${stringMark}, v_rest) = 0 AND LOCATE(${valueMark}, v_rest) = 0;
    SET v_rest = REGEXP_REPLACE(v_rest, ${binaryPattern(stringPattern)}, ${stringMark});
    SET v_rest = REGEXP_REPLACE(v_rest, ${binaryPattern(scalarPattern)}, ${valueMark});
    SET v_rest = REGEXP_REPLACE(v_rest, ${binaryPattern("[ \\t\\n\\r]+")}, '');
    reduce: WHILE LENGTH(v_rest) > 1 AND v_depth <= ${MAX_DEPTH} DO
      SET v_previous = v_rest;
      SET v_rest = REGEXP_REPLACE(v_rest, ${binaryPattern(flatPattern)}, ${valueMark});
      IF v_rest = v_previous THEN
        LEAVE reduce;
      END IF;
      SET v_depth = v_depth + 1;
    END WHILE;
    SET v_is_valid = v_is_valid AND (v_rest IN (${stringMark}, ${valueMark}) OR v_depth > ${MAX_DEPTH});
  ELSE
    BEGIN
      DECLARE CONTINUE HANDLER FOR 3157 SET v_depth = ${MAX_DEPTH + 1};
      SET v_is_valid = JSON_VALID(p_json);
    END;
  END IF;
  IF NOT v_is_valid THEN
    ${raise("SERIALIZATION_ERROR", "CONCAT('Cannot store ', p_label, ': it is not valid JSON; pass JSON text.')")}
  ELSEIF v_depth > ${MAX_DEPTH} THEN
    ${raise(
      "SERIALIZATION_ERROR",
      `CONCAT('Cannot store ', p_label, ': it is ', CASE WHEN ${isMariadb} THEN '${tooDeepMessage(MAX_DEPTH)}' ELSE '${tooDeepMessage(100)}' END, '; pass plain data instead.')`,
    )}
  END IF;
END`,
);

/** Loops join their results in parts of this size, because each CONCAT copies all that it joins. */
const partBytes = 65_536;

/** How JSON.stringify writes the control characters that have short escapes. */
const shortEscapes = Object.entries({ "0008": "b", "0009": "t", "000a": "n", "000c": "f", "000d": "r" })
  .map(([code, letter]) => `WHEN '${code}' THEN CONCAT(v_backslash, '${letter}')`)
  .join(" ");
const isLowSurrogate = (hex: string) => `${hex} BETWEEN 'dc00' AND 'dfff'`;

/**
 * Writes all strings as JSON.stringify does, with as few escapes as possible. Programs differ in what they escape (PHP
 * writes slashes and all letters beyond ASCII as escapes), and without this, one input would be two different ones.
 *
 * Meanwhile escaped backslashes are a mark, so that every backslash begins an escape.
 */
const createUnescape = procedure(
  "pawl_internal_unescape",
  [`INOUT p_json ${text}`],
  `
unescape: BEGIN
  DECLARE v_backslash CHAR(1) CHARACTER SET utf8mb4 DEFAULT ${backslash};
  DECLARE v_rest LONGBLOB;
  DECLARE v_done LONGBLOB DEFAULT '';
  DECLARE v_part LONGBLOB DEFAULT '';
  DECLARE v_from INT DEFAULT 1;
  DECLARE v_at INT;
  DECLARE v_hex VARCHAR(8) CHARACTER SET utf8mb4;
  DECLARE v_low VARCHAR(8) CHARACTER SET utf8mb4;
  IF LOCATE(v_backslash, p_json) = 0 THEN
    LEAVE unescape;
  END IF;
  SET v_rest = CAST(p_json AS BINARY);
  SET v_rest = REPLACE(v_rest, CONCAT(v_backslash, v_backslash), ${stringMark});
  SET v_rest = REPLACE(v_rest, CONCAT(v_backslash, '/'), '/');
  SET v_at = LOCATE(CONCAT(v_backslash, 'u'), v_rest);
  WHILE v_at > 0 DO
    SET v_hex = LOWER(CONVERT(SUBSTRING(v_rest, v_at + 2, 4) USING utf8mb4));
    SET v_part = CONCAT(v_part, SUBSTRING(v_rest, v_from, v_at - v_from));
    SET v_from = v_at + 6;
    IF v_hex BETWEEN 'd800' AND 'dbff' AND SUBSTRING(v_rest, v_from, 2) = CONCAT(v_backslash, 'u') THEN
      SET v_low = LOWER(CONVERT(SUBSTRING(v_rest, v_from + 2, 4) USING utf8mb4));
      IF ${isLowSurrogate("v_low")} THEN
        SET v_hex = CONCAT(v_hex, v_low);
        SET v_from = v_from + 6;
      END IF;
    END IF;
    SET v_part = CONCAT(v_part, CASE
      WHEN LENGTH(v_hex) = 8 THEN CAST(CONVERT(CONVERT(UNHEX(v_hex) USING utf16) USING utf8mb4) AS BINARY)
      WHEN v_hex = '0022' THEN CONCAT(v_backslash, '"')
      WHEN v_hex = '005c' THEN ${stringMark}
      WHEN v_hex >= '0020' AND v_hex NOT BETWEEN 'd800' AND 'dfff'
        THEN CAST(CONVERT(CONVERT(UNHEX(v_hex) USING utf16) USING utf8mb4) AS BINARY)
      ELSE CASE v_hex ${shortEscapes} ELSE CONCAT(v_backslash, 'u', v_hex) END
    END);
    IF LENGTH(v_part) > ${partBytes} THEN
      SET v_done = CONCAT(v_done, v_part);
      SET v_part = '';
    END IF;
    SET v_at = LOCATE(CONCAT(v_backslash, 'u'), v_rest, v_from);
  END WHILE;
  SET v_rest = CONCAT(v_done, v_part, SUBSTRING(v_rest, v_from));
  SET p_json = CONVERT(REPLACE(v_rest, ${stringMark}, CONCAT(v_backslash, v_backslash)) USING utf8mb4);
END`,
);

/**
 * Writes objects with the key `$pawl` as core/encoding/encode.ts does, so that they are not taken for tagged values. The
 * text comes from `pawl_internal_unescape`, so the key is always written in the same way.
 *
 * First, escaped backslashes and quotes become escapes with a number, so that every quote begins or ends a string. Then two
 * passes go from string to string: the first notes in `v_flags`, which has a digit for each object of the text, which
 * objects have the key, and the second writes the text. `v_stack` has the numbers of the open objects, nine digits each.
 */
const createEscape = procedure(
  "pawl_internal_escape",
  [`INOUT p_json ${text}`],
  `
escape_tags: BEGIN
  DECLARE v_backslash CHAR(1) CHARACTER SET utf8mb4 DEFAULT ${backslash};
  DECLARE v_json LONGBLOB;
  DECLARE v_gap LONGBLOB;
  DECLARE v_flags LONGBLOB;
  DECLARE v_stack LONGBLOB;
  DECLARE v_done LONGBLOB DEFAULT '';
  DECLARE v_part LONGBLOB DEFAULT '';
  DECLARE v_is_writing BOOLEAN DEFAULT FALSE;
  DECLARE v_count INT DEFAULT 0;
  DECLARE v_from INT DEFAULT 1;
  DECLARE v_at INT;
  DECLARE v_opening INT;
  DECLARE v_closing INT;
  DECLARE v_quote INT;
  DECLARE v_end INT;
  IF LOCATE('"${TAG}"', p_json) = 0 THEN
    LEAVE escape_tags;
  END IF;
  SET v_json = CAST(p_json AS BINARY);
  SET v_json = REPLACE(v_json, CONCAT(v_backslash, v_backslash), CONCAT(v_backslash, 'u005c'));
  SET v_json = REPLACE(v_json, CONCAT(v_backslash, '"'), CONCAT(v_backslash, 'u0022'));
  SET v_flags = REPEAT('0', LENGTH(v_json) - LENGTH(REPLACE(v_json, '{', '')));
  SET v_stack = '';
  WHILE v_from <= LENGTH(v_json) DO
    SET v_quote = LOCATE('"', v_json, v_from);
    IF v_quote = 0 THEN
      SET v_quote = LENGTH(v_json) + 1;
    END IF;
    SET v_gap = SUBSTRING(v_json, v_from, v_quote - v_from);
    SET v_at = 1;
    braces: WHILE v_at <= LENGTH(v_gap) DO
      SET v_opening = LOCATE('{', v_gap, v_at);
      SET v_closing = LOCATE('}', v_gap, v_at);
      IF v_opening = 0 AND v_closing = 0 THEN
        LEAVE braces;
      ELSEIF v_closing = 0 OR (v_opening > 0 AND v_opening < v_closing) THEN
        SET v_count = v_count + 1;
        SET v_stack = CONCAT(LPAD(v_count, 9, '0'), v_stack);
        IF v_is_writing THEN
          SET v_part = CONCAT(v_part, SUBSTRING(v_gap, v_at, v_opening - v_at),
            CASE SUBSTRING(v_flags, v_count, 1) WHEN '1' THEN '{${MARKER}"Object","v":{' ELSE '{' END);
        END IF;
        SET v_at = v_opening + 1;
      ELSE
        IF v_is_writing THEN
          SET v_part = CONCAT(v_part, SUBSTRING(v_gap, v_at, v_closing - v_at),
            CASE SUBSTRING(v_flags, CAST(LEFT(v_stack, 9) AS UNSIGNED), 1) WHEN '1' THEN '}}' ELSE '}' END);
        END IF;
        SET v_stack = SUBSTRING(v_stack, 10);
        SET v_at = v_closing + 1;
      END IF;
    END WHILE;

    SET v_end = LOCATE('"', v_json, v_quote + 1);
    IF v_end = 0 THEN
      SET v_end = LENGTH(v_json);
    END IF;
    SET v_from = v_end + 1;
    IF v_is_writing THEN
      SET v_part = CONCAT(v_part, SUBSTRING(v_gap, v_at), SUBSTRING(v_json, v_quote, v_from - v_quote));
      IF LENGTH(v_part) > ${partBytes} THEN
        SET v_done = CONCAT(v_done, v_part);
        SET v_part = '';
      END IF;
    ELSE
      IF SUBSTRING(v_json, v_quote, v_from - v_quote) = '"${TAG}"' THEN
        SET v_at = v_from;
        WHILE SUBSTRING(v_json, v_at, 1) IN (0x20, 0x09, 0x0a, 0x0d) DO
          SET v_at = v_at + 1;
        END WHILE;
        IF SUBSTRING(v_json, v_at, 1) = ':' THEN
          SET v_flags = INSERT(v_flags, CAST(LEFT(v_stack, 9) AS UNSIGNED), 1, '1');
        END IF;
      END IF;
      IF v_from > LENGTH(v_json) THEN
        SET v_is_writing = TRUE;
        SET v_from = 1;
        SET v_count = 0;
      END IF;
    END IF;
  END WHILE;
  SET v_json = CONCAT(v_done, v_part);
  SET v_json = REPLACE(v_json, CONCAT(v_backslash, 'u0022'), CONCAT(v_backslash, '"'));
  SET v_json = REPLACE(v_json, CONCAT(v_backslash, 'u005c'), CONCAT(v_backslash, v_backslash));
  SET p_json = CONVERT(v_json USING utf8mb4);
END`,
);

const raiseIfTooLarge = (bytes: string) => `IF ${bytes} > ${DEFAULT_LIMIT_BYTES} THEN
    ${raise(
      "PAYLOAD_TOO_LARGE",
      `CONCAT('Cannot store ', p_label, ': it is ', ${bytes}, ' bytes and the limit is ${DEFAULT_LIMIT_BYTES}. Keep the data elsewhere (a table, a file, a bucket) and pass a reference to it.')`,
    )}
  END IF;`;

const createEncode = procedure(
  "pawl_internal_encode",
  [`INOUT p_json ${text}`, `IN p_label ${text}`],
  `
encode_json: BEGIN
  IF p_json IS NULL THEN
    SET p_json = '${ENCODED_UNDEFINED}';
    LEAVE encode_json;
  END IF;
  ${raiseIfTooLarge("LENGTH(p_json)")}
  CALL pawl_internal_check_json(p_json, p_label);
  CALL pawl_internal_unescape(p_json);
  CALL pawl_internal_escape(p_json);
  ${raiseIfTooLarge("LENGTH(p_json)")}
END`,
);

/**
 * Compares two encoded inputs by value. MariaDB has JSON_EQUALS from 10.7 on (error 1305: there is no such function);
 * before that, the texts without their spaces are compared. On MySQL, JSON_EXTRACT returns values that compare as JSON. Texts
 * that the JSON functions do not read are the same only if they are equal.
 */
const createIsSame = procedure(
  "pawl_internal_is_same",
  [`IN p_stored ${text}`, `IN p_encoded ${text}`, "OUT p_is_same BOOLEAN"],
  `
BEGIN
  SET p_is_same = CAST(p_stored AS BINARY) = CAST(p_encoded AS BINARY);
  IF NOT p_is_same AND ${isMariadb} THEN
    BEGIN
      DECLARE EXIT HANDLER FOR SQLEXCEPTION SET p_is_same = FALSE;
      BEGIN
        DECLARE EXIT HANDLER FOR 1305
          SET p_is_same = COALESCE(CAST(JSON_COMPACT(p_stored) AS BINARY) = CAST(JSON_COMPACT(p_encoded) AS BINARY), FALSE);
        SET p_is_same = COALESCE(JSON_EQUALS(p_stored, p_encoded), FALSE);
      END;
    END;
  ELSEIF NOT p_is_same THEN
    BEGIN
      DECLARE EXIT HANDLER FOR SQLEXCEPTION SET p_is_same = FALSE;
      SET p_is_same = COALESCE(JSON_EXTRACT(p_stored, '$') = JSON_EXTRACT(p_encoded, '$'), FALSE);
    END;
  END IF;
END`,
);

export const jsonProcedures: readonly string[] = [
  ...createCheckJson,
  ...createUnescape,
  ...createEscape,
  ...createEncode,
  ...createIsSame,
];

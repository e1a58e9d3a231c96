//! Command lines and output parsing of each coding agent. The outputs are shortened real ones.

use super::refusal::judge_refusal;
use super::*;
use crate::settings::{ApiKey, EditMode};
use treebeam_run::port::Continuation;
use treebeam_store::env_file::Secret;

fn agent(tool: CliTool) -> CliAgent {
    CliAgent {
        tool,
        command: vec![tool.program_name().to_owned()],
        model: Some("m-1".to_owned()),
        args: vec!["--more".to_owned()],
        base_url: Some("http://127.0.0.1:1/v1".to_owned()),
        key: Some(ApiKey {
            variable: "MY_KEY".to_owned(),
            value: Secret::new("sk-canary".to_owned()),
        }),
        max_tokens: 9,
        home: AgentHome::Scratch,
        edits: EditMode::InPlace,
    }
}

/// Returns the command line of an agent with its variables, on one line.
fn started(tool: CliTool, doing: AccessMode, session: CliSession) -> String {
    let (cli, prompt) = (agent(tool), Path::new("desk/p.txt"));
    let surroundings = &AgentWorkspace::Folder("r".into());
    let call = build_call(&CliRequest { cli: &cli, doing, session, prompt, surroundings });
    let variables: Vec<String> =
        call.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert!(!call.arguments.join(" ").contains("canary"), "others see arguments");
    format!("{} {} {}", variables.join(" "), tool.program_name(), call.arguments.join(" "))
}

#[test]
fn how_each_is_started() {
    let check =
        |tool: CliTool, doing: AccessMode, session: CliSession, has: &[&str], lacks: &[&str]| {
            let line = started(tool, doing, session.clone());
            for part in has {
                assert!(line.contains(part), "no {part:?} in {line}");
            }
            for part in lacks {
                assert!(!line.contains(part), "{part:?} in {line}");
            }
            assert!(line.contains("--more") && line.contains("m-1"), "{line}");
        };
    let fork = || CliSession::Fork("s-1".to_owned());
    let copy = || CliSession::Copy("copy.json".into());
    check(
        CliTool::Codex,
        AccessMode::Editing,
        CliSession::New,
        &["CODEX_API_KEY=sk-canary", "exec --json", "workspace-write", "--more -"],
        &["fork", "resume"],
    );
    check(
        CliTool::Codex,
        AccessMode::Reading,
        fork(),
        &["exec fork --json", "read-only", "base_url=\"http://127.0.0.1:1/v1\"", "--more s-1 -"],
        &["workspace-write", "resume"],
    );
    let claude = ["ANTHROPIC_API_KEY=sk-canary", "ANTHROPIC_BASE_URL=http", "-p --output-format"];
    check(CliTool::Claude, AccessMode::Editing, CliSession::New, &claude, &["--resume"]);
    let forked = ["--resume s-1 --fork-session"];
    check(CliTool::Claude, AccessMode::Reading, fork(), &forked, &["acceptEdits"]);
    let gemini = ["GEMINI_API_KEY=sk-canary", "--approval-mode auto_edit"];
    check(CliTool::Gemini, AccessMode::Editing, CliSession::New, &gemini, &["--session-file"]);
    let copied = ["--approval-mode default", "--session-file copy.json"];
    check(CliTool::Gemini, AccessMode::Reading, copy(), &copied, &["auto_edit", "-r "]);
    let opencode = ["run --format json -m treebeam/m-1", "{env:TREEBEAM_AGENT_KEY}"];
    check(CliTool::Opencode, AccessMode::Editing, CliSession::New, &opencode, &["plan"]);
    check(CliTool::Opencode, AccessMode::Reading, fork(), &["--agent plan", "-s s-1 --fork"], &[]);
    let aider = [
        "OPENAI_API_KEY=sk-canary",
        "COLUMNS=100000",
        "--model openai/m-1",
        "--message-file desk/p.txt",
    ];
    check(CliTool::Aider, AccessMode::Editing, CliSession::New, &aider, &["--chat-mode"]);
    check(CliTool::Aider, AccessMode::Reading, CliSession::New, &["--chat-mode ask"], &[]);
    // `aider` leaves the user's repository alone.
    let apart = ["GIT_CONFIG_KEY_0=user.name", "--no-git", "--chat-history-file desk/chat.md"];
    check(CliTool::Aider, AccessMode::Reading, CliSession::New, &apart, &[]);
}

/// Describes a parsed output.
fn heard(tool: CliTool, stdout: &str, stderr: &str) -> String {
    match parse_output(tool, CliStreams { stdout, stderr }) {
        Ok(said) => {
            let usage = |usage: Option<TokenUsage>| match usage {
                Some(usage) => format!("{}/{}/{}", usage.input, usage.cached, usage.output),
                None => "-".to_owned(),
            };
            let (turn, thread) = (usage(said.usage), usage(said.taken));
            let id = said.id.unwrap_or_default();
            let cost = said.cost.map(|cost| format!(" {cost}")).unwrap_or_default();
            let refused = said.refused.join(",");
            format!("{:?} turn {turn} thread {thread} id {id}{cost} {refused}", said.text)
                .trim_end()
                .to_owned()
        }
        Err(refusal) => match judge_refusal(refusal, &agent(tool)) {
            TryError::Temporary { why, fault, spent, .. } => {
                format!("passing {fault:?} {spent:?}: {why}")
            }
            TryError::RateLimited { why, .. } => format!("too many: {why}"),
            TryError::Unanswered { why, .. } => format!("unanswered: {why}"),
            TryError::Forgotten(why) => format!("forgotten: {why}"),
            TryError::Unavailable(error) => {
                format!("unavailable: {}; {}", error.what, error.hint.unwrap_or_default())
            }
            other @ (TryError::Unreadable { .. }
            | TryError::OverBudget { .. }
            | TryError::OutOfTime { .. }
            | TryError::Interrupted) => format!("{other:?}"),
        },
    }
}

#[test]
fn what_codex_says() {
    let check = |stdout: &str, stderr: &str, expect: &str| {
        let found = heard(CliTool::Codex, stdout, stderr);
        assert!(found.starts_with(expect), "{found}");
    };
    let begun = r#"{"type":"thread.started","thread_id":"01a1e2e7-9863"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata for `m` not found."}}
{"type":"turn.started"}
"#;
    let done = r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"printf x","aggregated_output":"hello from agent\n","exit_code":0,"status":"completed"}}
not JSON at all
{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"EDIT DONE"}}
{"type":"turn.completed","usage":{"input_tokens":2500,"cached_input_tokens":7,"cache_write_input_tokens":0,"output_tokens":39,"reasoning_output_tokens":0}}"#;
    let expect = "\"EDIT DONE\" turn - thread 2500/7/39 id 01a1e2e7-9863";
    check(&format!("{begun}{done}"), "WARNING: proceeding", expect);
    let failed = |words: &str| {
        format!(
            "{begun}{{\"type\":\"error\",\"message\":\"Reconnecting... 1/5 ({words})\"}}\n{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"{words}\"}}}}"
        )
    };
    check(
        &failed(
            "unexpected status 401 Unauthorized: invalid key, url: http://127.0.0.1:4010/v1/responses",
        ),
        "",
        "unavailable: the key was refused: codex says: unexpected status 401 Unauthorized: invalid key, url: http://127.0.0.1:4010/v1/responses; put a key that is good there into the variable `MY_KEY`",
    );
    check(
        &failed("unexpected status 529 <unknown status code>: Overloaded"),
        "",
        "passing Overloaded Unknown: codex says: unexpected status 529",
    );
    let network = "Reconnecting... waiting for network (Connection failed: error sending request)";
    let lost = format!("{begun}{{\"type\":\"error\",\"message\":\"{network}\"}}");
    check(&lost, "", "passing Unreachable");
    let unknown =
        "Error: thread/fork: thread/fork failed: no rollout found for thread id 019f (code -32600)";
    check("", unknown, "forgotten: codex says: Error: thread/fork");
    check("", "error: unexpected argument '--mroe' found", "unanswered: codex says: error: unexp");
}

#[test]
fn what_claude_says() {
    let check = |stdout: &str, stderr: &str, expect: &str| {
        let found = heard(CliTool::Claude, stdout, stderr);
        assert!(found.starts_with(expect), "{found}");
    };
    let result = |error: &str, text: &str, tokens: &str, denials: &str| {
        format!(
            r#"{{"type":"result","subtype":"success","is_error":{error},"num_turns":2,"result":"{text}","stop_reason":"end_turn","session_id":"4102b2cb-75ae","total_cost_usd":0.001125,"usage":{{{tokens},"server_tool_use":{{"web_search_requests":0}}}},"modelUsage":{{"claude-sonnet-4-5":{{"inputTokens":250}}}},"permission_denials":{denials}}}"#
        )
    };
    let tokens = r#""input_tokens":250,"cache_creation_input_tokens":10,"cache_read_input_tokens":40,"output_tokens":25"#;
    let none = r#""input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0"#;
    let fine = r#"false,"api_error_status":null"#;
    let expect = "\"EDIT DONE\" turn 300/40/25 thread - id 4102b2cb-75ae $0.001125";
    check(&result(fine, "EDIT DONE", tokens, "[]"), "", expect);
    let denied = r#"[{"tool_name":"Write","tool_use_id":"toolu_T","tool_input":{"file_path":"edited.txt"}}]"#;
    check(&result(fine, "EDIT DONE", tokens, denied), "", &format!("{expect} Write"));
    let refused = result(
        r#"true,"api_error_status":401"#,
        "Failed to authenticate. API Error: 401 invalid key",
        none,
        "[]",
    );
    check(&refused, "", "unavailable: the key was refused: claude says: Failed to authenticate");
    let busy = "API Error: 529 Overloaded. This is a server-side issue, usually temporary";
    let busy = result(r#"true,"api_error_status":529"#, busy, none, "[]");
    check(&busy, "", "passing Overloaded Nothing: claude says: API Error: 529 Overloaded");
    let login =
        result(r#"true,"api_error_status":null"#, "Not logged in · Please run /login", none, "[]");
    check(&login, "", "unavailable: the key was refused: claude says: Not logged in");
    let unknown = "No conversation found with session ID: 019f6a00-0000-4000";
    check("", unknown, "forgotten: claude says: No conversation found");
}

#[test]
fn what_gemini_says() {
    let check = |stdout: &str, stderr: &str, expect: &str| {
        let found = heard(CliTool::Gemini, stdout, stderr);
        assert!(found.starts_with(expect), "{found}");
    };
    let answer = |fail: &str| {
        format!(
            r#"{{
  "session_id": "4f1ec35f-bd44",
  "response": "EDIT DONE",
  "stats": {{
    "models": {{
      "gemini-2.5-flash": {{
        "tokens": {{ "input": 250, "prompt": 250, "candidates": 25, "total": 275, "cached": 3, "thoughts": 2, "tool": 0 }}
      }},
      "gemini-2.5-pro": {{
        "tokens": {{ "input": 1, "prompt": 1, "candidates": 1, "total": 2, "cached": 0, "thoughts": 0, "tool": 0 }}
      }}
    }},
    "tools": {{ "totalCalls": 1, "byName": {{ "write_file": {{ "count": 1, "success": 0, "fail": {fail} }} }} }}
  }}
}}"#
        )
    };
    let noise = "YOLO mode is enabled.\nRipgrep is not available. Falling back to GrepTool.";
    let expect = "\"EDIT DONE\" turn 251/3/28 thread - id 4f1ec35f-bd44";
    check(&answer("0"), noise, expect);
    check(&answer("1"), "Error executing tool write_file", &format!("{expect} write_file"));
    let failed = |code: &str, words: &str| {
        format!(
            "Error when talking to Gemini API\n    at throwErrorIfNotOK {{\n  status: 1\n}}\n{{\n  \"session_id\": \"468a\",\n  \"error\": {{\n    \"type\": \"Error\",\n    \"message\": {words},\n    \"code\": {code}\n  }}\n}}"
        )
    };
    let said = r#""{\"error\":{\"code\":401,\"message\":\"invalid key\",\"status\":\"authentication_error\"}}""#;
    check("", &failed("401", said), "unavailable: the key was refused: gemini-cli says:");
    let said = r#""{\"error\":{\"code\":529,\"message\":\"Overloaded\",\"status\":\"overloaded_error\"}}""#;
    check("", &failed("529", said), "passing Overloaded Unknown: gemini-cli says:");
    let login = failed("41", r#""Invalid auth method selected.""#);
    check(&login, "", "unavailable: the key was refused");
    let lost = "Error importing session from file: File not found or invalid format: copy.json";
    check("", lost, "forgotten: gemini-cli says: Error importing session");
}

#[test]
fn what_opencode_says() {
    let check = |stdout: &str, stderr: &str, expect: &str| {
        let found = heard(CliTool::Opencode, stdout, stderr);
        assert!(found.starts_with(expect), "{found}");
    };
    let said = r#"{"type":"step_start","sessionID":"ses_e1","part":{"type":"step-start"}}
{"type":"step_finish","sessionID":"ses_e1","part":{"reason":"tool-calls","type":"step-finish","tokens":{"total":120,"input":100,"output":20,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}}
{"type":"text","sessionID":"ses_e1","part":{"type":"text","text":"EDIT DONE"}}
{"type":"step_finish","sessionID":"ses_e1","part":{"reason":"stop","type":"step-finish","tokens":{"total":155,"input":150,"output":5,"reasoning":1,"cache":{"write":2,"read":3}},"cost":0}}"#;
    check(said, "", "\"EDIT DONE\" turn 255/3/26 thread - id ses_e1");
    let denied = |error: &str| {
        let tool = format!(
            r#"{{"type":"tool_use","sessionID":"ses_e1","part":{{"type":"tool","tool":"write","state":{{"status":"error","error":"{error}"}}}}}}"#
        );
        format!("{tool}\n{said}")
    };
    let rejected = denied("The user rejected permission to use this specific tool call.");
    check(&rejected, "", "\"EDIT DONE\" turn 255/3/26 thread - id ses_e1 write");
    let ruled = denied("The user has specified a rule which prevents you from using this tool");
    check(&ruled, "", "\"EDIT DONE\" turn 255/3/26 thread - id ses_e1 write");
    let broken = heard(CliTool::Opencode, &denied("File not found"), "");
    assert!(broken.ends_with("id ses_e1"), "what fails is not refused: {broken}");
    let refused = r#"{"type":"error","sessionID":"ses_e1","error":{"name":"APIError","data":{"message":"invalid key","statusCode":401,"isRetryable":false}}}"#;
    check(refused, "", "unavailable: the key was refused: opencode says: invalid key");
    check("", "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found", "forgotten: opencode says");
}

#[test]
fn what_aider_says() {
    let check = |stdout: &str, expect: &str| {
        let found = heard(CliTool::Aider, stdout, "Warning: Input is not a terminal (fd=0).");
        assert!(found.contains(expect), "{found}");
    };
    let greeting = "Analytics have been permanently disabled.\n\nAider v0.86.2\nModel: openai/m with whole edit format\nGit repo: .git with 1 files\nRepo-map: using 1024 tokens, auto refresh\n\n";
    let first =
        "IDEA: it\n\nTokens: 300 sent, 16 received. Cost: $0.00091 message, $0.00091 session.\n";
    let second = "Applied edit to a.txt\nTokens: 2.4k sent, 1.1k cache hit, 1,016 received. Cost: $0.01 message, $0.0109 session.";
    let said = format!("{greeting}{first}{second}");
    check(
        &said,
        "\"IDEA: it\\n\\nApplied edit to a.txt\" turn 2700/1100/1032 thread - id  $0.010910",
    );
    check("Tokens: 3 sent, 1 received.", "\"\" turn 3/0/1");
    // An error that passes is ignored; one that is not overcome makes the answer incomplete.
    let failed = "litellm.APIError: APIError: OpenAIException - overloaded_error\n";
    check(&format!("{greeting}{failed}Retrying in 0.2 seconds...\n{first}"), "IDEA: it");
    let expect = "passing Overloaded Known(TokenUsage { input: 300, cached: 0, output: 16 })";
    check(&format!("{greeting}{first}{failed}"), expect);
    let refused = "Added a.txt to the chat.\n\nlitellm.AuthenticationError: AuthenticationError: OpenAIException - invalid key\nThe API provider is not able to authenticate you. Check your API key.";
    check(refused, "unavailable: the key was refused: aider says: litellm.AuthenticationError");
    let busy = "litellm.APIError: APIError: OpenAIException - Overloaded\nRetrying in 0.2 seconds...\nlitellm.APIError: APIError: OpenAIException - Overloaded";
    check(busy, "passing Overloaded Unknown: aider says: litellm.APIError");
}

#[test]
fn a_turn_takes_what_its_thread_took_since() {
    let usage = |input, output| TokenUsage { input, cached: 0, output };
    let said = CliOutput { taken: Some(usage(2507, 42)), ..CliOutput::default() };
    let mut question = AgentQuestion {
        key: "k".to_owned(),
        role: treebeam_run::port::AgentRole::Ideas,
        round: 0,
        prompt: "".into(),
        continues: None,
        place: None,
        node: None,
    };
    assert_eq!(build_reply(said.clone(), &question).usage, Some(usage(2507, 42)));
    let taken = Some(usage(2500, 39));
    question.continues = Some(Continuation { id: "t".to_owned(), tokens: 0, taken });
    let reply = build_reply(said, &question);
    assert_eq!((reply.usage, reply.taken), (Some(usage(7, 3)), Some(usage(2507, 42))));
}
